// Files broken by a generator: every field of the structure with every awkward value, and cuts everywhere. Any bytes
// must give a model or an Error, without large allocations.

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <set>

#include "ggmlx/core/error.h"
#include "ggmlx/file/allocation_count.h"
#include "ggmlx/file/model_bytes.h"
#include "ggmlx/file/reader.h"
#include "ggmlx/file/sample_model.h"

namespace ggmlx {
namespace {

using test::allocated_bytes;

struct Field {
    std::string name;
    size_t offset;
    size_t width;
    bool is_digest = false;
    bool may_vary = false;  // type, role, extents: other values can describe the same bytes
};

#define GGMLX_FIELD(base, Struct, member, prefix) \
    fields.push_back({std::string(prefix) + #member, (base) + offsetof(Struct, member), sizeof(Struct::member)})

std::vector<Field> all_fields(std::span<const std::byte> file) {
    using format::DocumentEntry, format::Header, format::TensorEntry;
    std::vector<Field> fields;
    for (size_t i = 0; i < 4; ++i) fields.push_back({"magic", i, 1});
    GGMLX_FIELD(0, Header, byte_order, "");
    GGMLX_FIELD(0, Header, version, "");
    GGMLX_FIELD(0, Header, header_bytes, "");
    GGMLX_FIELD(0, Header, file_bytes, "");
    GGMLX_FIELD(0, Header, n_documents, "");
    GGMLX_FIELD(0, Header, n_tensors, "");
    GGMLX_FIELD(0, Header, names_bytes, "");
    GGMLX_FIELD(0, Header, documents_bytes, "");
    const format::Header header = test::header_of(file);
    size_t at = sizeof header;
    for (uint32_t i = 0; i < header.n_documents; ++i, at += sizeof(DocumentEntry)) {
        GGMLX_FIELD(at, DocumentEntry, name_bytes, "document.");
        GGMLX_FIELD(at, DocumentEntry, reserved, "document.");
        GGMLX_FIELD(at, DocumentEntry, offset, "document.");
        GGMLX_FIELD(at, DocumentEntry, stored_bytes, "document.");
        GGMLX_FIELD(at, DocumentEntry, raw_bytes, "document.");
        fields.push_back({"document.digest", at + offsetof(DocumentEntry, digest), 8, true});
    }
    for (uint32_t i = 0; i < header.n_tensors; ++i, at += sizeof(TensorEntry)) {
        GGMLX_FIELD(at, TensorEntry, name_bytes, "tensor.");
        fields.push_back({"tensor.dtype", at + offsetof(TensorEntry, dtype), 4, false, true});
        fields.push_back({"tensor.role", at + offsetof(TensorEntry, role), 4, false, true});
        GGMLX_FIELD(at, TensorEntry, layout, "tensor.");
        GGMLX_FIELD(at, TensorEntry, rank, "tensor.");
        GGMLX_FIELD(at, TensorEntry, flags, "tensor.");
        for (size_t d = 0; d < 4; ++d)
            fields.push_back({"tensor.extent", at + offsetof(TensorEntry, extents) + 8 * d, 8, false, true});
        GGMLX_FIELD(at, TensorEntry, offset, "tensor.");
        GGMLX_FIELD(at, TensorEntry, stored_bytes, "tensor.");
        GGMLX_FIELD(at, TensorEntry, raw_bytes, "tensor.");
        GGMLX_FIELD(at, TensorEntry, expert_stride, "tensor.");
        fields.push_back({"tensor.digest", at + offsetof(TensorEntry, digest) + 8, 8, true});
    }
    return fields;
}
#undef GGMLX_FIELD

uint64_t load(std::span<const std::byte> file, const Field& field) {
    uint64_t value = 0;
    std::memcpy(&value, file.data() + field.offset, field.width);
    return value;
}

std::set<uint64_t> awkward_values(uint64_t truth, size_t width) {
    const uint64_t max = width == 8 ? UINT64_MAX : (uint64_t{1} << (8 * width)) - 1;
    std::set<uint64_t> values;
    for (uint64_t v : {uint64_t{0}, uint64_t{1}, max - 1, max, max / 2 + 1, truth + 1, truth - 1, uint64_t{1} << 31,
                       uint64_t{1} << 32, (uint64_t{1} << 62) + 1, uint64_t{1} << 63})
        if ((v & max) != truth) values.insert(v & max);
    return values;
}

enum class Outcome { Refused, RefusedOnReading, Accepted };

/// Opens the bytes and reads all there is. Anything but an Error ends the test program.
Outcome outcome(std::span<const std::byte> bytes) {
    allocated_bytes = 0;
    std::optional<ModelFile> file;
    try {
        file = ModelFile::from_bytes(bytes, "hostile.ggmx");
    } catch (const Error&) {
    }
    EXPECT_LE(allocated_bytes, bytes.size() + (size_t{1} << 20));
    if (!file) return Outcome::Refused;
    try {
        for (const std::string& name : file->document_names()) file->document(name);
        for (const StoredTensor& tensor : file->tensors()) {
            if (file->compute_checksum(tensor) != tensor.checksum) return Outcome::RefusedOnReading;
            std::vector<std::byte> data(tensor.raw_bytes);
            file->read(tensor, data);
        }
    } catch (const Error&) {
        return Outcome::RefusedOnReading;
    }
    EXPECT_LE(allocated_bytes, 16 * bytes.size() + (size_t{64} << 20));
    return Outcome::Accepted;
}

TEST(HostileFile, EveryFieldWithEveryAwkwardValue) {
    for (bool compress : {false, true}) {
        const std::vector<std::byte> good = test::sample_bytes(compress);
        ASSERT_EQ(outcome(good), Outcome::Accepted);
        std::vector<std::byte> bytes = good;
        for (const Field& field : all_fields(good))
            for (uint64_t value : awkward_values(load(good, field), field.width)) {
                std::memcpy(bytes.data() + field.offset, &value, field.width);
                EXPECT_EQ(outcome(bytes), Outcome::Refused) << field.name << " = " << value;  // by a digest
                test::reseal(bytes);
                const Outcome found = outcome(bytes);
                // A digest is only met when its data is read. A description may change into another of the same size.
                if (field.is_digest) {
                    EXPECT_EQ(found, Outcome::RefusedOnReading) << field.name;
                } else if (!field.may_vary) {
                    EXPECT_NE(found, Outcome::Accepted) << field.name << " = " << value << " at " << field.offset;
                }
                std::copy_n(good.begin(), test::structure_bytes(good), bytes.begin());
            }
    }
}

TEST(HostileFile, CutAnywhere) {
    for (bool compress : {false, true}) {
        const std::vector<std::byte> good = test::sample_bytes(compress);
        const size_t structure = test::structure_bytes(good);
        std::vector<size_t> cuts;
        for (size_t n = 0; n <= structure; ++n) cuts.push_back(n);
        std::mt19937_64 random(1);
        for (int i = 0; i < 64; ++i) cuts.push_back(structure + random() % (good.size() - structure));
        for (size_t n : cuts) {
            EXPECT_EQ(outcome(std::span(good).first(n)), Outcome::Refused) << n;
            if (n < sizeof(format::Header)) continue;
            // The same with a header that claims this to be the whole.
            std::vector<std::byte> bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(n));
            const uint64_t size = n;
            std::memcpy(bytes.data() + offsetof(format::Header, file_bytes), &size, sizeof size);
            test::reseal(bytes);
            EXPECT_EQ(outcome(bytes), Outcome::Refused) << n;
        }
    }
}

// A file of a hundred bytes must not make the reader reserve memory for the billions of entries it claims.
TEST(HostileFile, CountsAloneAllocateNothing) {
    for (uint32_t count : {1u, 1000u, 1u << 31, 0xffffffffu}) {
        std::vector<std::byte> bytes(sizeof(format::Header) + 40);
        format::Header header{};
        std::memcpy(header.magic, format::kMagic, 4);
        header.byte_order = format::kByteOrder;
        header.version = format::kVersion;
        header.header_bytes = sizeof header;
        header.file_bytes = bytes.size();
        header.n_documents = header.n_tensors = count;
        header.names_bytes = UINT64_MAX - 100;
        std::memcpy(bytes.data(), &header, sizeof header);
        test::reseal(bytes);
        EXPECT_EQ(outcome(bytes), Outcome::Refused);
    }
}

}  // namespace
}  // namespace ggmlx
