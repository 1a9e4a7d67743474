// The reader of GGUF files against files that are wrong in one place each, and against every field set to hostile
// values.

#include "convert/gguf/file.h"

#include <gtest/gtest.h>

#include "convert/gguf/matrix.h"
#include "tests/convert/gguf/made_gguf.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

MadeGguf small_file() {
    MadeGguf made;
    made.text("general.architecture", "llama")
        .u32("general.alignment", 32)
        .f32("f32", 1e-5f)
        .flag("flag", true)
        .texts("texts", {"a", "", "ccc"})
        .array<int32_t>("numbers", GgufKind::I32, {1, -2, 3});
    made.tensor("vector", {3}, GgufType::F32, bytes_of<float>({1, 2, 3}));
    made.tensor("matrix", {32, 2}, GgufType::Q8_0, std::string(68, '\1'));
    return made;
}

std::string refusal(MadeGguf made) {
    const std::string bytes = made.bytes();
    return error_of([&] { gguf_of(bytes); });
}

TEST(Gguf, ReadsVersionsTwoAndThree) {
    for (uint32_t version : {2u, 3u}) {
        MadeGguf made = small_file();
        made.version = version;
        const std::string bytes = made.bytes();
        const GgufFile file = gguf_of(bytes);
        const GgufMetadata& m = file.metadata();
        EXPECT_EQ(m.required_text("general.architecture"), "llama");
        EXPECT_EQ(m.real("f32", 0, 1), 1e-5);  // not 9.99999974e-06
        EXPECT_EQ(m.boolean("flag"), true);
        EXPECT_EQ(m.texts("texts"), (std::vector<std::string_view>{"a", "", "ccc"}));
        EXPECT_EQ(m.integers("numbers"), (std::vector<int64_t>{1, -2, 3}));
        EXPECT_EQ(m.text("nosuch"), std::nullopt);
        const GgufTensor* matrix = file.find("matrix");
        ASSERT_TRUE(matrix);
        EXPECT_EQ(matrix->shape, (ggmlx::Shape{2, 32}));
        EXPECT_EQ(matrix->type->name, "q8_0");
        EXPECT_EQ(std::memcmp(file.data(*matrix).data(), std::string(68, '\1').data(), 68), 0);
        EXPECT_EQ(file.find("nosuch"), nullptr);
    }
}

TEST(Gguf, RefusesOtherVersionsAndByteOrdersByName) {
    MadeGguf made = small_file();
    made.version = 1;
    EXPECT_CONTAINS(refusal(made), "version 1");
    made.version = 4;
    EXPECT_CONTAINS(refusal(made), "version 4");
    made.version = 0;
    EXPECT_CONTAINS(refusal(made), "version 0");
    made.version = 0x03000000;
    EXPECT_CONTAINS(refusal(made), "big-endian");
    EXPECT_CONTAINS(error_of([] { gguf_of("FUGG\0\0\0\3"); }), "GGUF");
    EXPECT_CONTAINS(error_of([] { gguf_of(""); }), "empty");
    EXPECT_CONTAINS(error_of([] { gguf_of("PK\3\4 an archive"); }), "zip");
    EXPECT_CONTAINS(error_of([] { gguf_of("GGUF"); }), "cut short");
}

TEST(Gguf, TypedLookUpsNameTheKey) {
    MadeGguf made = small_file();
    made.key("huge", GgufKind::U64, MadeGguf::raw(UINT64_MAX)).key("f64", GgufKind::F64, MadeGguf::raw(0.25));
    const std::string bytes = made.bytes();
    const GgufFile file = gguf_of(bytes);
    const GgufMetadata& m = file.metadata();
    EXPECT_EQ(m.real("f64", 0, 1), 0.25);
    EXPECT_EQ(m.real("general.alignment", 0, 100), 32.0);
    EXPECT_CONTAINS(error_of([&] { (void)m.integer("f32", 0, 1); }), "f32 should be an integer, not f32");
    EXPECT_CONTAINS(error_of([&] { (void)m.integer("huge", 0, 5); }), "18446744073709551615");
    EXPECT_CONTAINS(error_of([&] { (void)m.integer("general.alignment", 0, 5); }), "32, outside 0 to 5");
    EXPECT_CONTAINS(error_of([&] { (void)m.real("flag", 0, 1); }), "should be a number, not bool");
    EXPECT_CONTAINS(error_of([&] { (void)m.real("f32", 1, 2); }), "outside 1 to 2");
    EXPECT_CONTAINS(error_of([&] { (void)m.boolean("f32"); }), "should be a bool");
    EXPECT_CONTAINS(error_of([&] { (void)m.text("numbers"); }), "not an array of i32");
    EXPECT_CONTAINS(error_of([&] { (void)m.texts("numbers"); }), "an array of strings, not an array of i32");
    EXPECT_CONTAINS(error_of([&] { (void)m.integers("texts"); }), "an array of integers");
    EXPECT_CONTAINS(error_of([&] { (void)m.reals("numbers"); }), "an array of f32");
    EXPECT_CONTAINS(error_of([&] { (void)m.integers("flag"); }), "not bool");
    EXPECT_CONTAINS(error_of([&] { (void)m.required_text("nosuch"); }), "made.gguf has no nosuch");
}

TEST(Gguf, RefusesHeadersThatContradictThemselves) {
    auto changed = [](auto change) {
        MadeGguf made = small_file();
        change(made);
        return refusal(made);
    };
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.text("flag", "again"); }), "\"flag\" occurs twice");
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.text("", "x"); }), "a key is empty");
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.tensors[1].name = "vector"; }), "\"vector\" occurs twice");
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.tensors[1].name = ""; }), "no name");
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.tensors[0].dims = {}; }), "0 extents");
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.tensors[0].dims = {1, 1, 1, 1, 3}; }), "5 extents");
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.tensors[0].dims = {3, 0}; }), "extent of 0");
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.tensors[0].dims = {9}; }), "overlap");
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.tensors[1].dims = {33, 2}; }), "rows of 33 values");
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.tensors[1].dims = {32, 3}; }), "is the download complete?");
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.tensors[0].type = static_cast<GgufType>(4); }), "type 4");
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.array<float>("aa", GgufKind::Array, {}); }), "array of arrays");
    EXPECT_CONTAINS(changed([](MadeGguf& m) { m.key("b", GgufKind::Bool, "\2"); }), "neither 0 nor 1");
    for (const auto& dims : std::vector<std::vector<uint64_t>>{{uint64_t{1} << 32, uint64_t{1} << 32},
                                                               {uint64_t{1} << 63, 2},
                                                               {(uint64_t{1} << 62) + 1, 4},
                                                               {(uint64_t{1} << 62) - 32},
                                                               {UINT64_MAX}}) {
        for (size_t tensor : {0, 1}) {
            const std::string message = changed([&](MadeGguf& m) { m.tensors[tensor].dims = dims; });
            EXPECT_FALSE(message.empty());
        }
        EXPECT_CONTAINS(changed([&](MadeGguf& m) { m.tensors[0].dims = dims; }), "\"vector\"");
    }
}

TEST(Gguf, RefusesAlignmentsThatAreNone) {
    for (uint32_t bad : {0u, 1u, 3u, 48u, 1u << 30, 1u << 31, UINT32_MAX}) {
        MadeGguf made = small_file();
        made.remove("general.alignment").u32("general.alignment", bad);
        EXPECT_CONTAINS(refusal(made), "general.alignment") << bad;
    }
    MadeGguf other_kind = small_file();
    other_kind.remove("general.alignment").key("general.alignment", GgufKind::U64, MadeGguf::raw(uint64_t{32}));
    EXPECT_CONTAINS(refusal(other_kind), "no u32");
    MadeGguf wide = small_file();
    wide.alignment = 4096;
    wide.remove("general.alignment").u32("general.alignment", 4096);
    const std::string bytes = wide.bytes();
    EXPECT_EQ(gguf_of(bytes).find("matrix")->offset, 8192u);
}

/// Reads everything that a file offers; refusals are fine, anything else is not.
void read_everything(const std::string& bytes) {
    try {
        const GgufFile file = gguf_of(bytes);
        for (const auto& [key, value] : file.metadata().values()) {
            if (value.is_array && value.kind == GgufKind::String) (void)file.metadata().texts(key);
            if (!value.is_array && value.kind == GgufKind::String) (void)file.metadata().text(key);
        }
        for (const GgufTensor& tensor : file.tensors()) {
            ASSERT_LE(tensor.offset + tensor.size_bytes, bytes.size());
            const GgufCheckpoint::Entry entry{&file, &tensor};
            const GgufMatrix matrix(entry, 0, 0);
            std::vector<float> row(static_cast<size_t>(matrix.n_in()));
            for (int64_t i = 0; i < matrix.n_out(); ++i) matrix.read_rows(i, 1, row.data());
        }
    } catch (const ggmlx::Error&) {
    }
}

TEST(Gguf, TakesNoFieldOnTrust) {
    MadeGguf made = small_file();
    const std::string valid = made.bytes();
    read_everything(valid);
    const uint64_t values[] = {0,
                               1,
                               2,
                               3,
                               9,
                               31,
                               0x7f,
                               0xff,
                               0x7fff,
                               0xffff,
                               0x7fffffff,
                               0x80000000,
                               0xffffffff,
                               0x100000000,
                               (uint64_t{1} << 62) + 1,
                               uint64_t{1} << 63,
                               INT64_MAX,
                               UINT64_MAX - 1,
                               UINT64_MAX};
    int64_t n_files = 0;
    for (const GgufField& field : made.fields()) {
        uint64_t original = 0;
        std::memcpy(&original, valid.data() + field.offset, field.size);
        auto try_value = [&](uint64_t value) {
            std::string bytes = valid;
            std::memcpy(bytes.data() + field.offset, &value, field.size);
            SCOPED_TRACE(field.name + " = " + std::to_string(value));
            read_everything(bytes);
            ++n_files;
        };
        for (uint64_t value : values) try_value(value);
        try_value(original + 1);
        try_value(original - 1);
    }
    EXPECT_GT(n_files, 500);
}

TEST(Gguf, RefusesAFileCutShortAnywhere) {
    const std::string valid = small_file().bytes();
    for (size_t n = 0; n < valid.size(); ++n) {
        const std::string cut = valid.substr(0, n);
        EXPECT_THROW(gguf_of(cut), ggmlx::Error) << n << " of " << valid.size();
    }
}

TEST(Gguf, RefusesTensorsThatOverlapOrLieBesideTheirAlignment) {
    MadeGguf made = small_file();
    std::string bytes = made.bytes();
    const GgufField* offset = nullptr;
    for (const GgufField& field : made.fields())
        if (field.name == "offset") offset = &field;  // of the last tensor
    ASSERT_TRUE(offset);
    auto with_offset = [&](uint64_t value) {
        std::memcpy(bytes.data() + offset->offset, &value, sizeof value);
        return error_of([&] { gguf_of(bytes); });
    };
    EXPECT_CONTAINS(with_offset(0), "\"vector\" and \"matrix\" overlap");
    EXPECT_CONTAINS(with_offset(33), "no multiple of the alignment 32");
    EXPECT_CONTAINS(with_offset(64), "68 bytes at offset 64");
    EXPECT_CONTAINS(with_offset(UINT64_MAX - 31), "offset 18446744073709551584");
}

}  // namespace
}  // namespace convert
