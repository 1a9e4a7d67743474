#include "convert/gguf/header.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ggmlx/core/error.h"
#include "ggmlx/core/math.h"
#include "ggmlx/file/sniff.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kMinKeyBytes = 13;     // an empty key and one byte of value
constexpr uint64_t kMinTensorBytes = 32;  // an empty name and one extent
constexpr uint64_t kMaxNameBytes = 1024, kMaxKeyBytes = 65535;
constexpr uint64_t kMaxElements = uint64_t{1} << 62;
constexpr int64_t kDefaultAlignment = 32, kMinAlignment = 8, kMaxAlignment = 1 << 20;

/// Reads forward; whatever is not in the file is an error that names what was to be read.
class GgufCursor {
  public:
    GgufCursor(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

    template <class T>
    T number(std::string_view what) {
        T value;
        const auto bytes = take(sizeof value, what);
        std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }
    std::string_view string(std::string_view what, uint64_t max_bytes) {
        const auto size = number<uint64_t>(what);
        require(size <= max_bytes, ErrorKind::CorruptFile, "{}: {} at byte {} has a length of {} bytes", path_, what,
                position_ - sizeof size, size);
        const auto bytes = take(size, what);
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    std::span<const std::byte> take(uint64_t size, std::string_view what) {
        require(size <= left(), ErrorKind::CorruptFile,
                "{} is cut short: {} at byte {} needs {} bytes, and {} are left", path_, what, position_, size, left());
        const auto result = bytes_.subspan(position_, size);
        position_ += size;
        return result;
    }
    /// A count of things that take at least `min_bytes` each.
    uint64_t count(std::string_view what, uint64_t max, uint64_t min_bytes, uint64_t value) const {
        require(value <= max && value <= left() / min_bytes, ErrorKind::CorruptFile,
                "{} says that it has {} {}, which its {} bytes cannot hold", path_, value, what, bytes_.size());
        return value;
    }

    uint64_t left() const { return bytes_.size() - position_; }
    uint64_t position() const { return position_; }
    const std::string& path() const { return path_; }

  private:
    std::span<const std::byte> bytes_;
    const std::string& path_;
    uint64_t position_ = 0;
};

void read_version(std::span<const std::byte> bytes, GgufCursor& cursor) {
    const std::string& path = cursor.path();
    const std::string_view head(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kMagic.size()));
    require(head == kMagic, ErrorKind::CorruptFile, "{} is no GGUF file: {}", path,
            ggmlx::describe_foreign_file(bytes));
    cursor.take(kMagic.size(), "the magic");
    const auto version = cursor.number<uint32_t>("the version");
    require((version & 0xffff) != 0 || version == 0, ErrorKind::Unsupported,
            "{} is a big-endian GGUF file, which is not supported; convert the original checkpoint", path);
    require(version != 1, ErrorKind::Unsupported,
            "{} is GGUF version 1, which went out of use in 2023; convert the original checkpoint", path);
    require(version == 2 || version == 3, ErrorKind::Unsupported, "{} is GGUF version {}; this version reads 2 and 3",
            path, version);
}

GgufKind read_kind(GgufCursor& cursor, std::string_view key) {
    const auto kind = cursor.number<uint32_t>("a value's type");
    require(kind < kGgufKindCount, ErrorKind::CorruptFile, "{}: the value of \"{}\" has the unknown type {}",
            cursor.path(), key, kind);
    return static_cast<GgufKind>(kind);
}

/// Passes over the elements, so that later look-ups need no checks.
void read_elements(GgufCursor& cursor, std::string_view key, const GgufValue& value) {
    if (value.kind == GgufKind::String) {
        for (uint64_t i = 0; i < value.count; ++i) cursor.string(key, UINT64_MAX);
        return;
    }
    const auto data = cursor.take(value.count * fixed_bytes(value.kind), key);
    if (value.kind != GgufKind::Bool) return;
    const bool valid = std::all_of(data.begin(), data.end(), [](std::byte b) { return b <= std::byte{1}; });
    require(valid, ErrorKind::CorruptFile, "{}: \"{}\" holds a bool that is neither 0 nor 1", cursor.path(), key);
}

void read_pair(GgufCursor& cursor, std::span<const std::byte> bytes, GgufMetadata& metadata) {
    const std::string_view key = cursor.string("a key", kMaxKeyBytes);
    require(!key.empty(), ErrorKind::CorruptFile, "{}: a key is empty", cursor.path());
    GgufValue value;
    value.kind = read_kind(cursor, key);
    if (value.kind == GgufKind::Array) {
        value.is_array = true;
        value.kind = read_kind(cursor, key);
        require(value.kind != GgufKind::Array, ErrorKind::Unsupported, "{}: \"{}\" is an array of arrays",
                cursor.path(), key);
        const uint64_t min_bytes = std::max<uint64_t>(fixed_bytes(value.kind), 1);
        const auto count = cursor.number<uint64_t>(key);
        value.count =
            cursor.count("elements", UINT64_MAX, value.kind == GgufKind::String ? sizeof(uint64_t) : min_bytes, count);
    }
    const uint64_t begin = cursor.position();
    read_elements(cursor, key, value);
    value.data = bytes.subspan(begin, cursor.position() - begin);
    metadata.add(key, value);
}

ggmlx::Shape read_shape(GgufCursor& cursor, std::string_view name) {
    const auto rank = cursor.number<uint32_t>("a tensor's number of extents");
    require(rank >= 1 && rank <= ggmlx::kMaxDims, ErrorKind::CorruptFile,
            "{}: tensor \"{}\" has {} extents, not 1 to {}", cursor.path(), name, rank, ggmlx::kMaxDims);
    int64_t dims[ggmlx::kMaxDims] = {};
    uint64_t n_elements = 1;
    for (uint32_t i = 0; i < rank; ++i) {
        const auto extent = cursor.number<uint64_t>("a tensor's extent");
        require(extent > 0, ErrorKind::CorruptFile, "{}: tensor \"{}\" has an extent of 0", cursor.path(), name);
        require(extent <= kMaxElements / n_elements, ErrorKind::CorruptFile,
                "{}: the extents of tensor \"{}\" are impossibly large", cursor.path(), name);
        n_elements *= extent;
        dims[rank - 1 - i] = static_cast<int64_t>(extent);
    }
    return ggmlx::Shape(std::span<const int64_t>(dims, rank));
}

/// The offset is still relative to the data.
GgufTensor read_tensor(GgufCursor& cursor, int64_t alignment) {
    GgufTensor tensor;
    const std::string& path = cursor.path();
    tensor.name = cursor.string("a tensor's name", kMaxNameBytes);
    require(!tensor.name.empty(), ErrorKind::CorruptFile, "{}: a tensor has no name", path);
    tensor.shape = read_shape(cursor, tensor.name);
    const auto type = cursor.number<uint32_t>("a tensor's type");
    tensor.type = find_gguf_type(type);
    require(tensor.type, ErrorKind::Unsupported, "{}: tensor \"{}\" has the element type {}, which is not known", path,
            tensor.name, type);
    const int64_t n_in = tensor.shape[-1];
    require(n_in % tensor.type->block_len == 0, ErrorKind::CorruptFile,
            "{}: tensor \"{}\" has rows of {} values, but {} has blocks of {}", path, tensor.name, n_in,
            tensor.type->name, tensor.type->block_len);
    const auto n_blocks = static_cast<uint64_t>(tensor.shape.n_elements() / tensor.type->block_len);
    const auto block_bytes = static_cast<uint64_t>(tensor.type->block_bytes);
    require(n_blocks <= kMaxElements / block_bytes, ErrorKind::CorruptFile,
            "{}: the extents of tensor \"{}\" are impossibly large", path, tensor.name);
    tensor.size_bytes = n_blocks * block_bytes;
    tensor.offset = cursor.number<uint64_t>("a tensor's offset");
    require(tensor.offset % static_cast<uint64_t>(alignment) == 0, ErrorKind::CorruptFile,
            "{}: tensor \"{}\" lies at offset {}, which is no multiple of the alignment {}", path, tensor.name,
            tensor.offset, alignment);
    return tensor;
}

int64_t alignment_of(const GgufMetadata& metadata) {
    const GgufValue* value = metadata.find("general.alignment");
    if (!value) return kDefaultAlignment;
    require(!value->is_array && value->kind == GgufKind::U32, ErrorKind::CorruptFile, "{}: general.alignment is no u32",
            metadata.path());
    const int64_t alignment = *metadata.integer("general.alignment", kMinAlignment, kMaxAlignment);
    require((alignment & (alignment - 1)) == 0, ErrorKind::CorruptFile,
            "{}: general.alignment is {}, which is no power of two", metadata.path(), alignment);
    return alignment;
}

/// Makes offsets count from the start of the file, and checks that each tensor has a place of its own in it.
void place_tensors(std::vector<GgufTensor>& tensors, uint64_t data_begin, uint64_t file_bytes,
                   const std::string& path) {
    const uint64_t data_bytes = file_bytes - std::min(data_begin, file_bytes);
    for (GgufTensor& tensor : tensors) {
        require(tensor.size_bytes <= data_bytes && tensor.offset <= data_bytes - tensor.size_bytes,
                ErrorKind::CorruptFile,
                "{}: tensor \"{}\" has {} bytes at offset {}, but only {} bytes of data are there; is the download "
                "complete?",
                path, tensor.name, tensor.size_bytes, tensor.offset, data_bytes);
        tensor.offset += data_begin;
    }
    std::vector<size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tensors[a].offset < tensors[b].offset; });
    for (size_t i = 1; i < order.size(); ++i) {
        const GgufTensor &before = tensors[order[i - 1]], &after = tensors[order[i]];
        require(before.offset + before.size_bytes <= after.offset, ErrorKind::CorruptFile,
                "{}: the tensors \"{}\" and \"{}\" overlap", path, before.name, after.name);
    }
}

}  // namespace

std::vector<GgufTensor> parse_gguf_header(std::span<const std::byte> bytes, GgufMetadata& metadata) {
    GgufCursor cursor(bytes, metadata.path());
    read_version(bytes, cursor);
    const auto n_tensors = cursor.number<uint64_t>("the number of tensors");
    const auto n_keys = cursor.number<uint64_t>("the number of keys");
    cursor.count("tensors", GgufFile::kMaxTensors, kMinTensorBytes, n_tensors);
    cursor.count("keys", GgufFile::kMaxKeys, kMinKeyBytes, n_keys);
    for (uint64_t i = 0; i < n_keys; ++i) read_pair(cursor, bytes, metadata);

    const int64_t alignment = alignment_of(metadata);
    std::vector<GgufTensor> tensors;
    tensors.reserve(n_tensors);
    for (uint64_t i = 0; i < n_tensors; ++i) tensors.push_back(read_tensor(cursor, alignment));
    const auto data_begin = static_cast<uint64_t>(ggmlx::round_up(static_cast<int64_t>(cursor.position()), alignment));
    place_tensors(tensors, data_begin, bytes.size(), metadata.path());
    return tensors;
}

}  // namespace convert
