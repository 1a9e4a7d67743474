#include "convert/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "convert/safetensors_header.h"
#include "ggmlx/core/error.h"
#include "ggmlx/core/math.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian and read in place");

struct TypeInfo {
    std::string_view name;
    int64_t size_bytes;
};

TypeInfo info(SourceType type) {
    switch (type) {
        case SourceType::Bool:
            return {"BOOL", 1};
        case SourceType::U8:
            return {"U8", 1};
        case SourceType::I8:
            return {"I8", 1};
        case SourceType::F8_E5M2:
            return {"F8_E5M2", 1};
        case SourceType::F8_E4M3:
            return {"F8_E4M3", 1};
        case SourceType::F8_E8M0:
            return {"F8_E8M0", 1};
        case SourceType::I16:
            return {"I16", 2};
        case SourceType::U16:
            return {"U16", 2};
        case SourceType::F16:
            return {"F16", 2};
        case SourceType::BF16:
            return {"BF16", 2};
        case SourceType::I32:
            return {"I32", 4};
        case SourceType::U32:
            return {"U32", 4};
        case SourceType::F32:
            return {"F32", 4};
        case SourceType::I64:
            return {"I64", 8};
        case SourceType::U64:
            return {"U64", 8};
        case SourceType::F64:
            return {"F64", 8};
        case SourceType::C64:
            return {"C64", 8};
    }
    fail(ErrorKind::InvalidArgument, "{} is no safetensors type", static_cast<int>(type));
}

/// Bytes the shape asks for; corrupt_file when the product does not fit 63 bits.
uint64_t expected_bytes(const SourceTensor& t, const std::string& path) {
    std::optional<uint64_t> product = static_cast<uint64_t>(element_bytes(t.type));
    for (int64_t extent : t.shape)
        product = product ? ggmlx::checked_mul(*product, static_cast<uint64_t>(extent)) : product;
    require(product && *product <= INT64_MAX, ErrorKind::CorruptFile,
            "{}: tensor \"{}\" of shape {} is impossibly large", path, t.name, t.shape_text());
    return *product;
}

/// The length of the header, once it is known to lie within the file.
uint64_t header_bytes(std::span<const std::byte> bytes, const std::string& path) {
    require(bytes.size() >= 8, ErrorKind::CorruptFile,
            "{}: a safetensors file begins with 8 bytes of header length, but this file has {} bytes", path,
            bytes.size());
    uint64_t n = 0;
    std::memcpy(&n, bytes.data(), sizeof n);
    const bool is_pointer = std::memcmp(bytes.data(), "version ", 8) == 0;
    require(!is_pointer, ErrorKind::CorruptFile,
            "{} is a text file, probably a Git LFS pointer: fetch the real file (git lfs pull)", path);
    require(n <= bytes.size() - 8, ErrorKind::CorruptFile,
            "{}: the header should have {} bytes, but only {} follow; is the download complete?", path, n,
            bytes.size() - 8);
    require(n <= SafetensorsFile::kMaxHeaderBytes, ErrorKind::Unsupported,
            "{}: the header has {} bytes, above the limit of {}", path, n, SafetensorsFile::kMaxHeaderBytes);
    require(n >= 2, ErrorKind::CorruptFile, "{}: the header is empty", path);
    return n;
}

/// Tensors sorted by place must fill the data without hole, overlap or rest.
void check_places(const std::vector<SourceTensor>& tensors, uint64_t data_bytes, const std::string& path) {
    uint64_t end = 0;
    for (const SourceTensor& t : tensors) {
        require(t.offset >= end, ErrorKind::CorruptFile,
                "{}: the data of tensor \"{}\" (from {}) overlaps the one before it (to {})", path, t.name, t.offset,
                end);
        require(t.offset == end, ErrorKind::CorruptFile, "{}: bytes {} to {} before tensor \"{}\" belong to no tensor",
                path, end, t.offset, t.name);
        const uint64_t expected = expected_bytes(t, path);
        require(expected == t.size_bytes, ErrorKind::CorruptFile,
                "{}: tensor \"{}\" of type {} and shape {} needs {} bytes, but data_offsets give it {}", path, t.name,
                name(t.type), t.shape_text(), expected, t.size_bytes);
        end = t.offset + t.size_bytes;
    }
    require(end <= data_bytes, ErrorKind::CorruptFile,
            "{}: the file is cut short: its tensors need {} bytes of data, but it has {}; is the download complete?",
            path, end, data_bytes);
    require(end == data_bytes, ErrorKind::CorruptFile, "{}: {} bytes after the last tensor belong to no tensor", path,
            data_bytes - end);
}

}  // namespace

std::string_view name(SourceType type) { return info(type).name; }
int64_t element_bytes(SourceType type) { return info(type).size_bytes; }

int64_t SourceTensor::n_elements() const {
    int64_t n = 1;
    for (int64_t extent : shape) n *= extent;
    return n;
}
std::string SourceTensor::shape_text() const { return fmt::format("[{}]", fmt::join(shape, ", ")); }

SafetensorsFile SafetensorsFile::open(const std::string& path) {
    SafetensorsFile file;
    file.file_ = ggmlx::MappedFile(path);
    file.bytes_ = file.file_.bytes();
    file.path_ = path;
    file.parse();
    return file;
}

SafetensorsFile SafetensorsFile::from_bytes(std::span<const std::byte> bytes, std::string path) {
    SafetensorsFile file;
    file.bytes_ = bytes;
    file.path_ = std::move(path);
    file.parse();
    return file;
}

const SourceTensor* SafetensorsFile::find(std::string_view wanted) const {
    auto it = by_name_.find(wanted);
    return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

void SafetensorsFile::parse() {
    const uint64_t n = header_bytes(bytes_, path_);
    const std::string_view header(reinterpret_cast<const char*>(bytes_.data()) + 8, n);
    tensors_ = parse_safetensors_header(header, path_);
    std::stable_sort(tensors_.begin(), tensors_.end(), [](const SourceTensor& a, const SourceTensor& b) {
        return std::pair(a.offset, a.size_bytes) < std::pair(b.offset, b.size_bytes);
    });
    check_places(tensors_, bytes_.size() - 8 - n, path_);
    for (size_t i = 0; i < tensors_.size(); ++i) {
        tensors_[i].offset += 8 + n;
        by_name_[tensors_[i].name] = i;
    }
}

}  // namespace convert
