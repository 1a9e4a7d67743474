// Every element type of GGUF against values that the `gguf` package gives (tests/data/gguf, made by
// scripts/make_gguf_fixtures.py).

#include <gtest/gtest.h>

#include <limits>

#include "convert/gguf/checkpoint.h"
#include "convert/gguf/matrix.h"
#include "ggmlx/quant/quantize.h"
#include "tests/convert/gguf/fixtures.h"
#include "tests/convert/gguf/made_gguf.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

std::vector<float> decoded(const GgufMatrix& matrix) {
    std::vector<float> values(static_cast<size_t>(matrix.n_out() * matrix.n_in()));
    matrix.read_rows(0, matrix.n_out(), values.data());
    return values;
}

std::vector<float> stored(const GgufMatrix& matrix, ggmlx::DType dtype, int n_threads = 1) {
    std::vector<std::byte> bytes(static_cast<size_t>(ggmlx::slice_bytes(dtype, {matrix.n_out(), matrix.n_in()})));
    matrix.store(dtype, bytes, nullptr, n_threads);
    std::vector<float> values(static_cast<size_t>(matrix.n_out() * matrix.n_in()));
    ggmlx::dequantize_rows(dtype, bytes, matrix.n_out(), matrix.n_in(), 0, matrix.n_out(), values.data());
    return values;
}

TEST(GgufTypes, HaveTheValuesThatTheGgufPackageGives) {
    const auto checkpoint = GgufCheckpoint::open(gguf_fixture("types.gguf"));
    const auto expected = expected_checksums("types");
    EXPECT_EQ(expected.size(), 17u);
    for (const auto& [name, checksum] : expected) {
        SCOPED_TRACE(name);
        const auto* entry = checkpoint.find(name);
        ASSERT_TRUE(entry);
        const GgufMatrix matrix(*entry, 0, 0);
        EXPECT_EQ(crc32(decoded(matrix)), checksum);
        if (!entry->tensor->type->exact) continue;
        EXPECT_EQ(crc32(stored(matrix, *entry->tensor->type->dtype)), checksum) << "as stored";
        EXPECT_EQ(crc32(stored(matrix, *entry->tensor->type->dtype, 2)), checksum) << "as stored by two threads";
    }
}

TEST(GgufTypes, ThatCannotBeReadAreRefusedByName) {
    const auto checkpoint = GgufCheckpoint::open(gguf_fixture("types.gguf"));
    const auto expected = expected_checksums("types");
    int64_t n_refused = 0;
    for (const auto& [name, entry] : checkpoint.tensors()) {
        if (expected.contains(std::string(name))) continue;
        const GgufCheckpoint::Entry& refused = entry;
        EXPECT_CONTAINS(error_of([&] { GgufMatrix(refused, 0, 0); }), entry.tensor->type->name);
        ++n_refused;
    }
    EXPECT_EQ(n_refused, 17);
}

TEST(GgufTypes, RowsOfRotaryPairsComeApart) {
    // Two heads of 6 rows: pairs (0, 3), (1, 4), (2, 5) lie side by side in the file.
    std::string bytes;
    for (float row : {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}) bytes += bytes_of<float>({row, -row});
    MadeGguf made;
    made.tensor("q", {2, 12}, GgufType::F32, bytes).tensor("b", {12}, GgufType::F32, bytes.substr(0, 48));
    const std::string text = made.bytes();
    const GgufFile file = gguf_of(text);
    const auto values = decoded(GgufMatrix({&file, file.find("q")}, 0, 6));
    for (size_t i = 0; i < 12; ++i) EXPECT_EQ(values[2 * i], static_cast<float>(i));
    EXPECT_EQ(decoded(GgufMatrix({&file, file.find("b")}, 0, 4)),
              (std::vector<float>{0, 3, -0.0f, -3, 1, 4, -1, -4, 2, 5, -2, -5}));
    EXPECT_CONTAINS(error_of([&] { GgufMatrix({&file, file.find("q")}, 0, 8); }), "no whole heads of 8");
}

TEST(GgufTypes, ExpertsOfAStackAreSlices) {
    MadeGguf made;
    made.tensor("exps", {2, 1, 3}, GgufType::F32, bytes_of<float>({1, 2, 3, 4, 5, 6}));
    const std::string text = made.bytes();
    const GgufFile file = gguf_of(text);
    for (int64_t i = 0; i < 3; ++i)
        EXPECT_EQ(decoded(GgufMatrix({&file, file.find("exps")}, i, 0)),
                  (std::vector<float>{static_cast<float>(2 * i + 1), static_cast<float>(2 * i + 2)}));
}

TEST(GgufTypes, ScalesMustBeFinite) {
    struct Case {
        GgufType type;
        size_t bytes, at;
        std::string scale;
    };
    const std::string infinite("\x00\x7c", 2), nan("\x01\xfe", 2);
    const Case cases[] = {{GgufType::Q8_0, 34, 0, infinite}, {GgufType::Q4_0, 18, 0, nan},
                          {GgufType::Q4_1, 20, 2, infinite}, {GgufType::Q4_K, 144, 2, nan},
                          {GgufType::Q6_K, 210, 208, nan},   {GgufType::MXFP4, 17, 0, "\xfd"},
                          {GgufType::MXFP4, 17, 0, "\xff"},  {GgufType::Q5_1, 24, 0, infinite}};
    for (const Case& c : cases) {
        const GgufTypeInfo& type = *find_gguf_type(static_cast<uint32_t>(c.type));
        SCOPED_TRACE(type.name);
        // 20 rows of two blocks; the second block of row 18 is bad.
        std::string bytes(40 * c.bytes, '\x11');
        bytes.replace(37 * c.bytes + c.at, c.scale.size(), c.scale);
        MadeGguf made;
        made.tensor("w", {static_cast<uint64_t>(2 * type.block_len), 20}, c.type, bytes);
        const std::string text = made.bytes();
        const GgufFile file = gguf_of(text);
        const GgufMatrix matrix({&file, file.find("w")}, 0, 0);
        const auto dtype = type.exact ? *type.dtype : ggmlx::DType::F32;
        const std::string message = error_of([&] { stored(matrix, dtype); });
        EXPECT_CONTAINS(message, "\"w\"");
        EXPECT_CONTAINS(message, "row 18, column " + std::to_string(type.block_len));
    }
}

TEST(GgufTypes, PlainValuesMustBeFinite) {
    MadeGguf made;
    made.tensor("w", {2, 2}, GgufType::F32, bytes_of<float>({1, 2, 3, std::numeric_limits<float>::quiet_NaN()}));
    const std::string text = made.bytes();
    const GgufFile file = gguf_of(text);
    EXPECT_CONTAINS(error_of([&] {
                        stored(GgufMatrix({&file, file.find("w")}, 0, 0), ggmlx::DType::F32);
                    }),
                    "row 1, column 1");
}

}  // namespace
}  // namespace convert
