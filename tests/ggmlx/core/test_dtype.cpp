// The table of types, and sizes that must not wrap.

#include <gtest/gtest.h>

#include <set>

#include "ggmlx/core/dtype.h"
#include "ggmlx/core/math.h"
#include "ggmlx/core/tensor.h"

namespace ggmlx {
namespace {

TEST(DTypeTable, IdsNamesAndRowsAgree) {
    std::set<std::string_view> names;
    for (uint32_t id = 0; id < kDTypeCount; ++id) {
        const auto dtype = dtype_from_id(id);
        ASSERT_TRUE(dtype.has_value());
        EXPECT_EQ(static_cast<uint32_t>(*dtype), id);
        EXPECT_EQ(info(*dtype).dtype, *dtype);
        EXPECT_EQ(dtype_from_name(name(*dtype)), dtype);
        EXPECT_TRUE(names.insert(name(*dtype)).second);
        EXPECT_EQ(info(info(*dtype).fallback).is_block, is_block(*dtype));
        EXPECT_NE(all_dtype_names().find(name(*dtype)), std::string::npos);
    }
    EXPECT_FALSE(dtype_from_id(kDTypeCount));
    EXPECT_FALSE(dtype_from_id(255));
    EXPECT_FALSE(dtype_from_id(0xffffffffu));
    EXPECT_THROW(info(static_cast<DType>(200)), Error);
}

TEST(DTypeTable, NamesAreReadInAnyCase) {
    EXPECT_EQ(dtype_from_name("MXFP4"), DType::MXFP4);
    EXPECT_EQ(dtype_from_name("Q4_K_M"), DType::Q4_K);
    EXPECT_EQ(dtype_from_name("q9_9"), std::nullopt);
}

TEST(StorageBytes, CountsPaddingOfTiles) {
    EXPECT_EQ(storage_bytes(DType::F32, {3, 5}), 60);
    EXPECT_EQ(storage_bytes(DType::MXFP4, {1, 1}), 272);
    EXPECT_EQ(storage_bytes(DType::MXFP4, {17, 33}), 4 * 272);
    EXPECT_EQ(storage_bytes(DType::Q4_K, {16, 512}), 2 * 2304);
    EXPECT_EQ(storage_bytes(DType::Q8_0, {3, 17, 32}), 3 * 2 * 544);
    EXPECT_EQ(slice_bytes(DType::Q8_0, {3, 17, 32}), 2 * 544);
    EXPECT_THROW(storage_bytes(DType::Q8_0, {32}), Error);
}

TEST(StorageBytes, RefusesProductsThatWrap) {
    constexpr int64_t k62 = int64_t{1} << 62;
    const Shape shapes[] = {{int64_t{1} << 32, int64_t{1} << 32},
                            {INT64_MAX, 2},
                            {k62 + 1, 4},
                            {4, k62 + 1},
                            {k62, 2, 2, 2},
                            {2, 2, k62, 2},
                            {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}};
    for (DType dtype : {DType::F8_E4M3, DType::F32, DType::Q4_0, DType::Q4_K, DType::MXFP4, DType::MXFP8})
        for (const Shape& shape : shapes)
            EXPECT_THROW(storage_bytes(dtype, shape), Error) << name(dtype) << shape.to_string();
}

TEST(Shape, RefusesBadExtents) {
    EXPECT_THROW((Shape{1, 2, 3, 4, 5}), Error);
    EXPECT_THROW((Shape{-1}), Error);
    EXPECT_EQ((Shape{4, 3, 2}).to_string(), "[4, 3, 2]");
    EXPECT_EQ((Shape{4, 3, 2})[-1], 2);
    EXPECT_EQ((Shape{4, 3, 2}).n_rows(), 12);
}

TEST(CheckedMath, NoticesOverflow) {
    EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 31), uint64_t{1} << 63);
    EXPECT_FALSE(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32));
    EXPECT_FALSE(checked_add(UINT64_MAX, 1));
    EXPECT_EQ(checked_round_up(65, 64), 128u);
    EXPECT_EQ(checked_round_up(128, 64), 128u);
    EXPECT_FALSE(checked_round_up(UINT64_MAX - 3, 64));
    EXPECT_EQ(ceil_div(INT64_MAX, 2), INT64_MAX / 2 + 1);
}

TEST(TensorSet, KeepsHandlesAndRefusesDoubles) {
    TensorSet set;
    const Tensor first = set.add("a", DType::F32, {2}, Role::Norm);
    for (int i = 0; i < 1000; ++i) set.add("t" + std::to_string(i), DType::F32, {1}, Role::Dense);
    EXPECT_EQ(first.name(), "a");
    EXPECT_EQ(set.get("a"), first);
    EXPECT_FALSE(set.find("b"));
    EXPECT_THROW(set.get("b"), Error);
    EXPECT_THROW(set.add("a", DType::F32, {2}, Role::Norm), Error);
    EXPECT_THROW(set.add("v", DType::F32, {2}, Role::Norm, TensorKind::Value), Error);
}

TEST(Role, HasANameForEveryId) {
    std::set<std::string_view> names;
    for (uint32_t id = 0; id < kRoleCount; ++id) EXPECT_TRUE(names.insert(name(*role_from_id(id))).second);
    EXPECT_FALSE(role_from_id(kRoleCount));
}

}  // namespace
}  // namespace ggmlx
