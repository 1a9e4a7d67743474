// The reader of .safetensors against files that are wrong in one place each.

#include <gtest/gtest.h>

#include "convert/safetensors.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

SafetensorsFile parse(const std::string& bytes) {
    return SafetensorsFile::from_bytes(std::as_bytes(std::span(bytes.data(), bytes.size())), "made.safetensors");
}

std::string length_prefix(uint64_t n) { return {reinterpret_cast<const char*>(&n), sizeof n}; }

const std::string kValid = R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

TEST(Safetensors, ReadsNamesTypesShapesAndData) {
    const std::string bytes = raw_safetensors(
        R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[8,12]},)"
        R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"s":{"dtype":"I64","shape":[],"data_offsets":[12,20]},)"
        R"("z":{"dtype":"U8","shape":[0,3],"data_offsets":[20,20]}}   )",
        std::string("AAAABBBBccddIIIIIIII"));
    const auto file = parse(bytes);
    ASSERT_EQ(file.tensors().size(), 4u);
    EXPECT_EQ(file.tensors()[0].name, "a");
    const SourceTensor* b = file.find("b");
    ASSERT_TRUE(b);
    EXPECT_EQ(b->type, SourceType::BF16);
    EXPECT_EQ(b->shape, (std::vector<int64_t>{2, 1}));
    EXPECT_EQ(std::memcmp(file.data(*b).data(), "ccdd", 4), 0);
    EXPECT_EQ(file.find("s")->n_elements(), 1);
    EXPECT_EQ(file.find("z")->size_bytes, 0u);
    EXPECT_EQ(file.find("nosuch"), nullptr);
}

struct BadFile {
    std::string id, bytes, message;
};

/// Cases SF02 to SF17: an 8-byte length, JSON, zeros as data, and a word that the error must hold.
std::vector<BadFile> bad_files() {
    auto made = [](const std::string& header, size_t n_data) {
        return raw_safetensors(header, std::string(n_data, '\0'));
    };
    const std::string deep = std::string(100000, '[') + std::string(100000, ']');
    return {
        {"SF02 empty file", "", "0 bytes"},
        {"SF03 short prefix", length_prefix(54).substr(0, 3), "3 bytes"},
        {"SF04 huge length", length_prefix(UINT64_MAX) + kValid + std::string(8, '\0'), "18446744073709551615"},
        {"SF05 length one past the file", length_prefix(63) + kValid + std::string(8, '\0'), "only 62 follow"},
        {"SF06 length 0", length_prefix(0), "header is empty"},
        {"SF07 duplicate name",
         made(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
              R"("t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
              8),
         "duplicate"},
        {"SF08 overlap",
         made(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
              R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
              8),
         "overlaps"},
        {"SF09 hole",
         made(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
              R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
              12),
         "belong to no tensor"},
        {"SF10 past the end", made(R"({"t":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 8), "cut short"},
        {"SF11 trailing data", made(kValid, 9), "after the last tensor"},
        {"SF12 size mismatch", made(R"({"t":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8), "needs 12 bytes"},
        {"SF13 product wraps",
         made(R"({"t":{"dtype":"F32","shape":[4611686018427387905,4],"data_offsets":[0,16]}})", 16),
         "impossibly large"},
        {"SF14 unknown dtype", made(R"({"t":{"dtype":"Q9_9","shape":[2],"data_offsets":[0,8]}})", 8), "Q9_9"},
        {"SF15 metadata is no string",
         made(R"({"__metadata__":{"a":1},"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8), "__metadata__"},
        {"SF16 deep JSON", length_prefix(200000) + deep, "JSON object"},
        {"SF17 text file", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"},
    };
}

TEST(Safetensors, RefusesEveryBadFile) {
    for (const BadFile& bad : bad_files()) {
        try {
            parse(bad.bytes);
            ADD_FAILURE() << bad.id << " was accepted";
        } catch (const ggmlx::Error& error) {
            EXPECT_EQ(error.kind(), ggmlx::ErrorKind::CorruptFile) << bad.id;
            EXPECT_CONTAINS(error.what(), bad.message) << bad.id;
            EXPECT_CONTAINS(error.what(), "made.safetensors") << bad.id;
        }
    }
}

TEST(Safetensors, RefusesHeadersThatSayTooLittleOrTooMuch) {
    for (const char* header :
         {R"({"t":{"dtype":"F32","shape":[2]}})", R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
          R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
          R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8,16]}})",
          R"({"t":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
          R"({"t":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})",
          R"({"t":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})",
          R"({"t":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})",
          R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})",
          R"({"t":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})", R"({"t":[]})", R"({"t":3})",
          R"([])", R"("t")", R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} {})",
          R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})", R"({"t":null})"})
        EXPECT_THROW(parse(raw_safetensors(header, std::string(8, '\0'))), ggmlx::Error) << header;
}

TEST(Safetensors, RefusesAHeaderCutAtEveryByte) {
    const std::string whole = raw_safetensors(kValid, std::string(8, '\0'));
    for (size_t n = 0; n < whole.size(); ++n) EXPECT_THROW(parse(whole.substr(0, n)), ggmlx::Error) << n << " bytes";
    EXPECT_NO_THROW(parse(whole));
}

TEST(Safetensors, StatesTheLimitOfHeaderBytes) {
    // A sparse file whose header would be one byte above the limit.
    TempFolder folder;
    const std::string path = folder / "big.safetensors";
    write_file(path, length_prefix(SafetensorsFile::kMaxHeaderBytes + 1));
    std::filesystem::resize_file(path, SafetensorsFile::kMaxHeaderBytes + 100);
    const std::string message = error_of([&] { SafetensorsFile::open(path); });
    EXPECT_CONTAINS(message, std::to_string(SafetensorsFile::kMaxHeaderBytes));
    EXPECT_CONTAINS(message, std::to_string(SafetensorsFile::kMaxHeaderBytes + 1));
    static_assert(SafetensorsFile::kMaxHeaderBytes > 126'000'000, "headers of 126 MB exist");
}

}  // namespace
}  // namespace convert
