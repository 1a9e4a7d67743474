#pragma once
// Reading a .ggmx file: map it, check header, documents and index against the real size, hand out views.
// The bytes are described in gguf-like-spec/README.md. Nothing here trusts the file: any bytes give a ModelFile or an
// Error.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ggmlx/core/direct_reader.h"
#include "ggmlx/core/tensor.h"
#include "ggmlx/file/checksum.h"

namespace ggmlx {

/// One tensor of the index.
struct StoredTensor {
    std::string name;
    DType dtype = DType::F32;
    Role role = Role::Dense;
    Shape shape;                ///< true extents, without padding
    uint64_t offset = 0;        ///< of the data, from the start of the file
    uint64_t stored_bytes = 0;  ///< bytes in the file: raw data, or one zstd frame per slice, back to back
    uint64_t raw_bytes = 0;     ///< bytes once expanded, gaps between experts included; stored_bytes if not compressed
    /// Bytes from one expert's slice to the next, in the raw bytes (so in the file too if not compressed); a slice of a
    /// large expert is padded to a page, the last one is not. 0 unless the role is Expert.
    uint64_t expert_stride = 0;
    bool compressed = false;
    Checksum checksum;  ///< of the slice, or combine() of the experts' checksums; gaps are not covered
};

/// One document of the index.
struct StoredDocument {
    std::string name;
    uint64_t offset = 0;        ///< of the zstd frame, from the start of the file
    uint64_t stored_bytes = 0;  ///< of the frame
    uint64_t raw_bytes = 0;     ///< of the text
    Checksum checksum;          ///< of the text
};

class ModelFile {
  public:
    /// Maps and validates header, index and documents; tensor data is not read. Throws io, corrupt_file (with offset or
    /// entry) or unsupported (a newer version, the other byte order, a file that is still being written: NAME.partial).
    static ModelFile open(const std::string& path);
    /// The same for bytes in memory, which must outlive the result (tests, fuzzing).
    static ModelFile from_bytes(std::span<const std::byte> bytes, std::string name);

    const std::string& path() const { return path_; }
    uint64_t size_bytes() const { return bytes_.size(); }
    uint32_t version() const { return version_; }

    /// Documents by name ("config.json", "tokenizer.json", …), expanded on request. Throws corrupt_file if damaged.
    std::vector<std::string> document_names() const;
    bool has_document(std::string_view name) const;
    std::string document(std::string_view name) const;

    /// In file order.
    const std::vector<StoredTensor>& tensors() const { return tensors_; }
    const StoredTensor* find(std::string_view name) const;
    /// The stored bytes of a tensor (a zstd frame if compressed), mapped.
    std::span<const std::byte> stored_bytes(const StoredTensor& tensor) const;
    /// Expands into dst, which has raw_bytes, and verifies the checksum. Throws corrupt_file. For raw tensors: a
    /// checked copy. May be called from several threads at once.
    void read(const StoredTensor& tensor, std::span<std::byte> dst) const;
    /// Throws corrupt_file if `raw`, the raw bytes of a tensor, do not have its checksum.
    void check(const StoredTensor& tensor, std::span<const std::byte> raw) const;
    /// The same for the checksums of its slices (experts, or the one matrix).
    void check(const StoredTensor& tensor, std::span<const Checksum> slices) const;
    /// Any bytes of the file, read past the page cache where that is possible (DirectReader), not through the mapping.
    /// May be called from several threads at once. Throws io.
    void read_direct(uint64_t offset, std::span<std::byte> dst) const;
    /// The checksum of a tensor as its bytes are in the file now; compare with tensor.checksum. Throws corrupt_file if
    /// they cannot be expanded.
    Checksum compute_checksum(const StoredTensor& tensor) const;

  private:
    std::unique_ptr<const MappedFile> file_;  ///< none for bytes in memory
    std::optional<DirectReader> direct_;      ///< of that file
    std::span<const std::byte> bytes_;
    std::string path_;
    uint32_t version_ = 0;
    std::vector<StoredDocument> documents_;
    std::vector<StoredTensor> tensors_;
    std::map<std::string, size_t, std::less<>> tensor_by_name_;

    void parse();
    const StoredDocument* find_document(std::string_view name) const;
};

}  // namespace ggmlx
