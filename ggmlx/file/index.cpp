#include "ggmlx/file/index.h"

#include <cstring>
#include <set>
#include <string_view>

#include "ggmlx/core/math.h"
#include "ggmlx/file/format.h"
#include "ggmlx/file/layout.h"
#include "ggmlx/file/sniff.h"

namespace ggmlx {
namespace {

using namespace format;

class IndexParser {
  public:
    IndexParser(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

    FileIndex parse() {
        read_header();
        FileIndex index;
        index.version = header_.version;
        locate_sections();
        for (uint32_t i = 0; i < header_.n_documents; ++i) index.documents.push_back(next_document(i));
        check(position_ == documents_end_, "its documents end at byte {} instead of {}", position_, documents_end_);
        names_seen_.clear();
        for (uint32_t i = 0; i < header_.n_tensors; ++i) index.tensors.push_back(next_tensor(i));
        check(names_.empty(), "{} bytes of its names belong to no entry", names_.size());
        check(position_ == bytes_.size(), "{} bytes follow the last tensor", bytes_.size() - position_);
        return index;
    }

  private:
    template <class... Args>
    void check(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
        if (condition) return;
        fail(ErrorKind::CorruptFile, "{}: {}", path_, fmt::format(format, std::forward<Args>(args)...));
    }

    void read_header() {
        const std::string_view magic(reinterpret_cast<const char*>(bytes_.data()), std::min(bytes_.size(), size_t{4}));
        const bool swapped = magic == "XMGG";
        check(swapped || magic == std::string_view(kMagic, 4), "this is no .ggmx file: {}",
              describe_foreign_file(bytes_));
        check(bytes_.size() >= sizeof header_, "the file is cut short: it has {} bytes, its header alone {}",
              bytes_.size(), sizeof header_);
        std::memcpy(&header_, bytes_.data(), sizeof header_);
        require(!swapped && header_.byte_order != __builtin_bswap32(kByteOrder), ErrorKind::Unsupported,
                "{}: wrong byte order: the file is big-endian, this program reads little-endian files", path_);
        check(header_.byte_order == kByteOrder, "the byte order mark is {:#010x} instead of {:#010x}",
              header_.byte_order, kByteOrder);
        require(header_.version == kVersion, ErrorKind::Unsupported,
                "{}: the file has format version {}, this program reads version {}: {}", path_, header_.version,
                kVersion, header_.version > kVersion ? "use a newer ggmlx" : "convert the model again");
        check(header_.header_bytes == sizeof header_, "the header claims to have {} bytes instead of {}",
              header_.header_bytes, sizeof header_);
        check(xxh3(bytes_.first(offsetof(Header, header_digest))) == Checksum(header_.header_digest),
              "the checksum of the header is wrong");
        check(header_.file_bytes <= bytes_.size(),
              "the file is cut short: it has {} bytes of {} (an incomplete download or copy?)", bytes_.size(),
              header_.file_bytes);
        check(header_.file_bytes == bytes_.size(), "the file has {} bytes after its end at byte {}",
              bytes_.size() - header_.file_bytes, header_.file_bytes);
    }

    void locate_sections() {
        const uint64_t after_header = bytes_.size() - sizeof header_;
        // Within 64 bits: the counts have 32.
        const uint64_t entries_bytes =
            header_.n_documents * sizeof(DocumentEntry) + header_.n_tensors * sizeof(TensorEntry);
        check(entries_bytes <= after_header,
              "the index of {} documents and {} tensors does not fit the file of {} bytes", header_.n_documents,
              header_.n_tensors, bytes_.size());
        check(header_.names_bytes <= after_header - entries_bytes, "{} bytes of names do not fit the file of {} bytes",
              header_.names_bytes, bytes_.size());
        const uint64_t index_bytes = entries_bytes + header_.names_bytes;
        check(header_.documents_bytes <= after_header - index_bytes,
              "{} bytes of documents do not fit the file of {} bytes", header_.documents_bytes, bytes_.size());

        position_ = sizeof header_ + index_bytes;
        documents_end_ = position_ + header_.documents_bytes;
        const auto index = bytes_.subspan(sizeof header_, index_bytes);
        check(xxh3(index) == Checksum(header_.index_digest), "the checksum of the index is wrong");
        check(xxh3(bytes_.subspan(position_, header_.documents_bytes)) == Checksum(header_.documents_digest),
              "the checksum of the documents is wrong");
        document_entries_ = index.first(header_.n_documents * sizeof(DocumentEntry));
        tensor_entries_ = index.subspan(document_entries_.size(), header_.n_tensors * sizeof(TensorEntry));
        names_ = {reinterpret_cast<const char*>(index.data()) + entries_bytes,
                  static_cast<size_t>(header_.names_bytes)};
    }

    /// Names lie back to back in the order of their entries.
    std::string next_name(uint32_t name_bytes, std::string_view what, uint32_t i) {
        check(name_bytes <= names_.size(), "{} {}: a name of {} bytes, but only {} bytes of names are left", what, i,
              name_bytes, names_.size());
        std::string name(names_.substr(0, name_bytes));
        check(is_valid_name(name), "{} {}: its name of {} bytes is no printable UTF-8 of 1 to {} bytes", what, i,
              name_bytes, kMaxNameBytes);
        names_.remove_prefix(name_bytes);
        check(names_seen_.insert(name).second, "duplicate name: two {}s are called {}", what, name);
        return name;
    }

    StoredDocument next_document(uint32_t i) {
        DocumentEntry entry;
        std::memcpy(&entry, document_entries_.data() + i * sizeof entry, sizeof entry);
        StoredDocument document{next_name(entry.name_bytes, "document", i), entry.offset, entry.stored_bytes,
                                entry.raw_bytes, Checksum(entry.digest)};
        const std::string& name = document.name;
        check(is_valid_document_name(name), "document {}: {} is no plain file name", i, name);
        check(entry.reserved == 0, "document {}: the reserved field is {:#x} instead of 0", name, entry.reserved);
        check(entry.offset == position_, "document {}: it starts at byte {} instead of {}", name, entry.offset,
              position_);
        check(entry.stored_bytes <= documents_end_ - position_,
              "document {}: its {} bytes reach beyond the documents' end", name, entry.stored_bytes);
        check(is_sane_document_size(entry.raw_bytes, entry.stored_bytes),
              "document {}: {} bytes cannot come from a frame of {}", name, entry.raw_bytes, entry.stored_bytes);
        position_ += entry.stored_bytes;
        return document;
    }

    StoredTensor next_tensor(uint32_t i) {
        TensorEntry entry;
        std::memcpy(&entry, tensor_entries_.data() + i * sizeof entry, sizeof entry);
        StoredTensor tensor;
        tensor.name = next_name(entry.name_bytes, "tensor", i);
        describe(entry, tensor);
        place(entry, tensor);
        return tensor;
    }

    /// Type, role, flags and extents.
    void describe(const TensorEntry& entry, StoredTensor& tensor) const {
        const auto dtype = dtype_from_id(entry.dtype);
        check(dtype.has_value(), "tensor {}: there is no type {}", tensor.name, entry.dtype);
        const auto role = role_from_id(entry.role);
        check(role.has_value(), "tensor {}: there is no role {}", tensor.name, entry.role);
        const uint32_t layout = is_block(*dtype) ? kTile16 : kRowMajor;
        check(entry.layout == layout, "tensor {}: its layout is {}, but {} has layout {}", tensor.name, entry.layout,
              name(*dtype), layout);
        check((entry.flags & ~uint32_t{kCompressed}) == 0, "tensor {}: its flags {:#x} are unknown", tensor.name,
              entry.flags);
        check(entry.rank >= 1 && entry.rank <= kMaxDims, "tensor {}: it has {} extents instead of 1 to {}", tensor.name,
              entry.rank, kMaxDims);
        int64_t extents[kMaxDims];
        for (uint32_t d = 0; d < kMaxDims; ++d) {
            check(d < entry.rank || entry.extents[d] == 0, "tensor {}: extent {} is {}, but it has only {} extents",
                  tensor.name, d, entry.extents[d], entry.rank);
            check(entry.extents[d] <= uint64_t{1} << 62, "tensor {}: extent {} is {}: too large", tensor.name, d,
                  entry.extents[d]);
            extents[d] = static_cast<int64_t>(entry.extents[d]);
        }
        tensor.dtype = *dtype;
        tensor.role = *role;
        tensor.compressed = (entry.flags & kCompressed) != 0;
        tensor.shape = Shape(std::span<const int64_t>(extents, entry.rank));
        tensor.checksum = Checksum(entry.digest);
    }

    /// Sizes and offset against the rules of the format and the end of the file.
    void place(const TensorEntry& entry, StoredTensor& tensor) {
        const DataLayout layout = layout_of(tensor);
        const std::string& name = tensor.name;
        check(entry.raw_bytes == layout.raw_bytes, "tensor {}: {} {} has {} bytes, not {}", name,
              ggmlx::name(tensor.dtype), tensor.shape.to_string(), layout.raw_bytes, entry.raw_bytes);
        check(entry.expert_stride == layout.expert_stride, "tensor {}: its expert stride is {} instead of {}", name,
              entry.expert_stride, layout.expert_stride);
        check(tensor.compressed || entry.stored_bytes == entry.raw_bytes,
              "tensor {}: it is not compressed, but {} bytes are stored for {}", name, entry.stored_bytes,
              entry.raw_bytes);
        check(entry.offset % layout.alignment == 0, "tensor {}: its offset {} is no multiple of {}", name, entry.offset,
              layout.alignment);
        check(entry.offset >= position_, "tensor {}: at byte {} it overlaps what ends at byte {}", name, entry.offset,
              position_);
        check(entry.offset - position_ < layout.alignment, "tensor {}: a hole lies before it, from byte {} to {}", name,
              position_, entry.offset);
        check(entry.offset <= bytes_.size() && entry.stored_bytes <= bytes_.size() - entry.offset,
              "tensor {}: its {} bytes at byte {} reach beyond the end of the file at {}", name, entry.stored_bytes,
              entry.offset, bytes_.size());
        check(entry.raw_bytes <= kMaxExpansion * entry.stored_bytes,
              "tensor {}: {} bytes cannot come from {} compressed ones", name, entry.raw_bytes, entry.stored_bytes);
        tensor.offset = entry.offset;
        tensor.stored_bytes = entry.stored_bytes;
        tensor.raw_bytes = entry.raw_bytes;
        tensor.expert_stride = entry.expert_stride;
        position_ = entry.offset + entry.stored_bytes;
    }

    DataLayout layout_of(const StoredTensor& tensor) const {
        try {
            return data_layout(tensor.name, tensor.dtype, tensor.role, tensor.shape, tensor.compressed);
        } catch (const Error& e) {
            fail(ErrorKind::CorruptFile, "{}: tensor {}: {}", path_, tensor.name, e.what());
        }
    }

    std::span<const std::byte> bytes_;
    const std::string& path_;
    Header header_{};
    std::span<const std::byte> document_entries_, tensor_entries_;
    std::string_view names_;            // those not yet read
    std::set<std::string> names_seen_;  // of the kind of entry being read
    uint64_t documents_end_ = 0;
    uint64_t position_ = 0;  // end of what has been accounted for
};

}  // namespace

FileIndex parse_index(std::span<const std::byte> bytes, const std::string& path) {
    return IndexParser(bytes, path).parse();
}

}  // namespace ggmlx
