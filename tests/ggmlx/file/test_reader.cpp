// What the reader gives for good files, and that it refuses the bad ones people meet with a message that helps them.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <functional>

#include "ggmlx/core/error.h"
#include "ggmlx/file/model_bytes.h"
#include "ggmlx/file/reader.h"
#include "ggmlx/file/sample_model.h"

namespace ggmlx {
namespace {

using test::has;
using test::sample_bytes;

ModelFile read(const std::vector<std::byte>& bytes) { return ModelFile::from_bytes(bytes, "model.ggmx"); }

std::string refusal(const std::vector<std::byte>& bytes, ErrorKind kind = ErrorKind::CorruptFile) {
    try {
        read(bytes);
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), kind) << e.what();
        EXPECT_EQ(std::string(e.what()).rfind("model.ggmx: ", 0), 0u) << e.what();
        return e.what();
    }
    return "accepted";
}

std::vector<std::byte> text_bytes(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

/// Applies `change` to tensor entry i and repairs the digests, so that the entry's own checks are met.
std::vector<std::byte> with_tensor(size_t i, const std::function<void(format::TensorEntry&)>& change) {
    std::vector<std::byte> bytes = sample_bytes(false);
    const format::Header header = test::header_of(bytes);
    std::byte* at = bytes.data() + sizeof header + header.n_documents * sizeof(format::DocumentEntry) +
                    i * sizeof(format::TensorEntry);
    format::TensorEntry entry;
    std::memcpy(&entry, at, sizeof entry);
    change(entry);
    std::memcpy(at, &entry, sizeof entry);
    test::reseal(bytes);
    return bytes;
}

constexpr size_t kNorm = 0, kEmbedding = 1, kGate = 3, kUp = 5, kOutput = 7;  // of sample_tensors()

TEST(Reader, GivesWhatWasWritten) {
    for (bool compress : {false, true}) {
        const std::vector<std::byte> bytes = sample_bytes(compress);
        const ModelFile file = read(bytes);
        EXPECT_EQ(file.version(), format::kVersion);
        EXPECT_EQ(file.size_bytes(), bytes.size());
        const auto documents = test::sample_documents();
        ASSERT_EQ(file.document_names().size(), documents.size());
        for (const auto& document : documents) EXPECT_EQ(file.document(document.name), document.text);
        EXPECT_FALSE(file.has_document("absent"));
        EXPECT_THROW(file.document("absent"), Error);

        const auto written = test::sample_tensors();
        ASSERT_EQ(file.tensors().size(), written.size());
        for (size_t t = 0; t < written.size(); ++t) {
            const StoredTensor& tensor = file.tensors()[t];
            EXPECT_EQ(file.find(written[t].name), &tensor);
            EXPECT_EQ(tensor.dtype, written[t].dtype);
            EXPECT_EQ(tensor.role, written[t].role);
            EXPECT_EQ(tensor.shape, written[t].shape);
            EXPECT_EQ(tensor.compressed, compress);
            EXPECT_EQ(tensor.offset % (tensor.role == Role::Expert && !compress ? 4096 : 64), 0u);
            EXPECT_EQ(file.compute_checksum(tensor), tensor.checksum);
            std::vector<std::byte> data(tensor.raw_bytes);
            file.read(tensor, data);
            const bool stacked = tensor.role == Role::Expert && tensor.shape.rank() == 3;
            const uint64_t n_slices = stacked ? static_cast<uint64_t>(tensor.shape[0]) : 1;
            const uint64_t slice = static_cast<uint64_t>(storage_bytes(tensor.dtype, tensor.shape)) / n_slices;
            for (uint64_t i = 0; i < n_slices; ++i) {
                const auto wanted = test::sample_slice(written[t], slice, static_cast<unsigned>(1000 * t + i));
                const auto found = std::span(data).subspan(i * (stacked ? tensor.expert_stride : 0), slice);
                EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), found.begin())) << tensor.name << i;
            }
        }
        EXPECT_EQ(file.find("absent"), nullptr);
        EXPECT_EQ(file.tensors()[kUp].expert_stride, compress ? 263168u : 266240u);
        EXPECT_EQ(file.tensors()[kGate].expert_stride, 2u * 2 * 272);
        EXPECT_EQ(file.tensors()[4].expert_stride, 17u * 4);
    }
}

TEST(Reader, OpensAMappedFileThatStaysValidWhenMoved) {
    const std::string path = test::fresh_path("open.ggmx");
    test::write_bytes(path, sample_bytes(false));
    ModelFile first = ModelFile::open(path);
    const ModelFile second = std::move(first);
    EXPECT_EQ(second.path(), path);
    EXPECT_EQ(second.document("config.json"), test::sample_documents()[0].text);
    for (const StoredTensor& tensor : second.tensors()) {
        EXPECT_EQ(second.stored_bytes(tensor).size(), tensor.stored_bytes);
        EXPECT_EQ(second.compute_checksum(tensor), tensor.checksum);
    }
    std::filesystem::remove(path);
    EXPECT_THROW(ModelFile::open(path), Error);
}

TEST(Reader, AcceptsAModelWithoutTensorsOrDocuments) {
    const std::string path = test::fresh_path("bare.ggmx");
    test::write_model(path, {}, {}, false);
    EXPECT_TRUE(ModelFile::open(path).tensors().empty());
    test::write_model(path, test::sample_documents(), {}, false);
    EXPECT_EQ(ModelFile::open(path).document_names().size(), 3u);
    std::filesystem::remove(path);
}

TEST(Reader, SaysWhatAForeignFileLooksLike) {
    EXPECT_TRUE(has(refusal({}), "empty"));
    EXPECT_TRUE(has(refusal(text_bytes("GGUF\3\0\0\0 and more")), "GGUF"));
    EXPECT_TRUE(has(refusal(text_bytes(std::string_view("\x36\0\0\0\0\0\0\0{\"t\":1}", 16))), "safetensors"));
    EXPECT_TRUE(has(refusal(text_bytes("version https://git-lfs.github.com/spec/v1\n")), "Git LFS"));
    EXPECT_TRUE(has(refusal(text_bytes("version 1 of something\n")), "text file"));
    EXPECT_TRUE(has(refusal(text_bytes("PK\3\4....")), "PyTorch"));
    EXPECT_TRUE(has(refusal(std::vector<std::byte>(1000)), "zeros"));
    EXPECT_TRUE(has(refusal(text_bytes("GGMX")), "cut short"));
}

TEST(Reader, RefusesTheOtherByteOrderAndOtherVersions) {
    std::vector<std::byte> bytes = sample_bytes(false);
    std::reverse(bytes.begin(), bytes.begin() + 4);
    EXPECT_TRUE(has(refusal(bytes, ErrorKind::Unsupported), "wrong byte order"));
    bytes = sample_bytes(false);
    std::reverse(bytes.begin() + 4, bytes.begin() + 8);
    EXPECT_TRUE(has(refusal(bytes, ErrorKind::Unsupported), "wrong byte order"));
    bytes = sample_bytes(false);
    bytes[8] = std::byte{7};
    const std::string message = refusal(bytes, ErrorKind::Unsupported);
    EXPECT_TRUE(has(message, "version 7") && has(message, "version 1"));
}

TEST(Reader, RefusesAPartialFileByName) {
    const std::string path = test::fresh_path("half.ggmx") + ".partial";
    test::write_bytes(path, sample_bytes(false));
    try {
        ModelFile::open(path);
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Unsupported);
        EXPECT_TRUE(has(e.what(), "run the conversion again"));
    }
    std::filesystem::remove(path);
}

TEST(Reader, ReportsMissingAndExtraBytes) {
    std::vector<std::byte> bytes = sample_bytes(false);
    const std::string whole = std::to_string(bytes.size());
    bytes.pop_back();
    std::string message = refusal(bytes);
    EXPECT_TRUE(has(message, "cut short") && has(message, whole) && has(message, std::to_string(bytes.size())));
    bytes.resize(bytes.size() + 11);
    EXPECT_TRUE(has(refusal(bytes), "10 bytes after its end"));
    format::Header header = test::header_of(bytes);  // the same with a header that agrees
    header.file_bytes = bytes.size();
    std::memcpy(bytes.data(), &header, sizeof header);
    test::reseal(bytes);
    EXPECT_TRUE(has(refusal(bytes), "10 bytes follow the last tensor"));
}

// F01, F02, F04, F07 of the collected bug reports: sizes and ids that other loaders believed.
TEST(Reader, RefusesTensorsThatDoNotFit) {
    const std::string norm = "tensor output_norm.weight";
    auto refused = [](size_t i, auto change) { return refusal(with_tensor(i, change)); };
    std::string message = refused(kNorm, [](auto& e) { e.extents[0] = 1024, e.raw_bytes = e.stored_bytes = 4096; });
    EXPECT_TRUE(has(message, "hole") || has(message, "overlaps") || has(message, "beyond the end")) << message;
    message = refused(kOutput, [](auto& e) { e.extents[0] = 1 << 20, e.raw_bytes = e.stored_bytes = 2304ull << 21; });
    EXPECT_TRUE(has(message, "tensor output.weight") && has(message, "beyond the end of the file")) << message;

    using Extents = std::array<uint64_t, 4>;
    const uint64_t k62 = uint64_t{1} << 62;
    for (const Extents& extents : {Extents{1ull << 32, 1ull << 32, 0, 0}, Extents{1ull << 63, 2, 0, 0},
                                   Extents{k62 + 1, 4, 0, 0}, Extents{k62, 4, 4, 4}})
        for (uint32_t dtype = 0; dtype < kDTypeCount; ++dtype) {
            message = refused(kEmbedding, [&](auto& e) {
                std::copy(extents.begin(), extents.end(), e.extents);
                e.rank = extents[2] ? 4 : 2;
                e.dtype = dtype;
                e.layout = is_block(*dtype_from_id(dtype));
            });
            EXPECT_TRUE(has(message, "tensor token_embd.weight")) << message;
        }
    for (uint32_t rank : {0u, 5u, 9u, 0xffffffffu})
        EXPECT_TRUE(has(refused(kNorm, [&](auto& e) { e.rank = rank; }), norm + ": it has " + std::to_string(rank)));
    for (uint32_t id : {12u, 255u, 1u << 31, 0xffffffffu}) {
        EXPECT_TRUE(has(refused(kNorm, [&](auto& e) { e.dtype = id; }), "no type " + std::to_string(id)));
        EXPECT_TRUE(has(refused(kNorm, [&](auto& e) { e.role = id; }), "no role " + std::to_string(id)));
        EXPECT_TRUE(has(refused(kNorm, [&](auto& e) { e.layout = id; }), "layout is " + std::to_string(id)));
    }
    EXPECT_TRUE(has(refused(kNorm, [](auto& e) { e.flags = 2; }), "flags 0x2"));
    EXPECT_TRUE(has(refused(kNorm, [](auto& e) { e.role = 9; }), "a cache is never in a file"));
    EXPECT_TRUE(has(refused(kNorm, [](auto& e) { e.extents[0] = 0; }), "no extent may be 0"));
    EXPECT_TRUE(has(refused(kNorm, [](auto& e) { e.extents[3] = 1; }), "extent 3 is 1"));
    EXPECT_TRUE(has(refused(kNorm, [](auto& e) { e.raw_bytes = e.stored_bytes = 24; }), "has 20 bytes, not 24"));
    EXPECT_TRUE(has(refused(kNorm, [](auto& e) { e.dtype = 4, e.layout = 1; }), "needs a matrix"));
    EXPECT_TRUE(has(refused(kOutput, [](auto& e) { e.extents[3] = 255; }), "multiple of 256"));
}

TEST(Reader, RefusesTensorsInTheWrongPlace) {
    auto refused = [](size_t i, auto change) { return refusal(with_tensor(i, change)); };
    EXPECT_TRUE(has(refused(kEmbedding, [](auto& e) { e.offset -= 64; }), "overlaps"));
    EXPECT_TRUE(has(refused(kEmbedding, [](auto& e) { e.offset += 64; }), "a hole lies before it"));
    for (uint64_t delta : {1u, 3u, 32u})
        EXPECT_TRUE(has(refused(kEmbedding, [&](auto& e) { e.offset += delta; }), "no multiple of 64"));
    EXPECT_TRUE(has(refused(kGate, [](auto& e) { e.offset += 64; }), "no multiple of 4096"));
    EXPECT_TRUE(has(refused(kNorm, [](auto& e) { e.offset = uint64_t{1} << 63; }), "hole"));
    for (uint64_t stride : {uint64_t{0}, uint64_t{1}, uint64_t{263168}, uint64_t{1} << 63})
        EXPECT_TRUE(has(refused(kUp, [&](auto& e) { e.expert_stride = stride; }), "expert stride"));
    EXPECT_TRUE(has(refused(kNorm, [](auto& e) { e.expert_stride = 20; }), "expert stride is 20 instead of 0"));
}

TEST(Reader, RefusesSwappedOffsetsAndDoubleNames) {
    std::vector<std::byte> bytes = sample_bytes(false);
    const format::Header header = test::header_of(bytes);
    std::byte* entries = bytes.data() + sizeof header + header.n_documents * sizeof(format::DocumentEntry);
    constexpr size_t at = offsetof(format::TensorEntry, offset), next = at + sizeof(format::TensorEntry);
    std::swap_ranges(entries + at, entries + at + 8, entries + next);
    test::reseal(bytes);
    EXPECT_TRUE(has(refusal(bytes), "tensor output_norm.weight: a hole lies before it"));

    const std::string path = test::fresh_path("names.ggmx");
    test::write_model(path, {{"aa", ""}, {"bb", ""}},
                      {{"cc", DType::F32, Role::Norm, {1}}, {"dd", DType::F32, Role::Norm, {1}}}, false);
    bytes = test::read_bytes(path);
    std::filesystem::remove(path);
    const size_t names = sizeof header + 2 * sizeof(format::DocumentEntry) + 2 * sizeof(format::TensorEntry);
    auto with_names = [&](std::string_view text) {
        std::vector<std::byte> changed = bytes;
        std::memcpy(changed.data() + names, text.data(), text.size());
        test::reseal(changed);
        return refusal(changed);
    };
    EXPECT_TRUE(has(with_names("aabbcccc"), "duplicate name: two tensors are called cc"));
    EXPECT_TRUE(has(with_names("aaaaccdd"), "duplicate name: two documents are called aa"));
    EXPECT_TRUE(has(with_names("..bbccdd"), "plain file name"));
    EXPECT_TRUE(has(with_names("aab/ccdd"), "plain file name"));
    EXPECT_TRUE(has(with_names("aabbc\nddd"), "UTF-8"));
    EXPECT_TRUE(has(with_names("aabb\xc3(dd"), "UTF-8"));
    EXPECT_EQ(with_names("aabb\xc3\xa9"
                         "dd"),
              "accepted");
    EXPECT_EQ(with_names("aabbaadd"), "accepted");  // a document and a tensor may share a name
}

TEST(Reader, NoticesDamagedContents) {
    for (bool compress : {false, true}) {
        const std::vector<std::byte> good = sample_bytes(compress);
        const ModelFile file = read(good);
        for (const StoredTensor& tensor : file.tensors()) {
            std::vector<std::byte> bytes = good;
            bytes[tensor.offset + tensor.stored_bytes - 1] ^= std::byte{1};
            const ModelFile damaged = read(bytes);
            const StoredTensor& same = *damaged.find(tensor.name);
            std::vector<std::byte> data(same.raw_bytes);
            EXPECT_THROW(damaged.read(same, data), Error) << tensor.name;
            if (!compress) {
                EXPECT_NE(damaged.compute_checksum(same), same.checksum) << tensor.name;
            }
        }
        std::vector<std::byte> bytes = good;
        bytes[test::structure_bytes(bytes) + 12] ^= std::byte{1};
        EXPECT_TRUE(has(refusal(bytes), "checksum of the documents"));
        test::reseal(bytes);
        EXPECT_THROW(read(bytes).document("config.json"), Error);
    }
}

}  // namespace
}  // namespace ggmlx
