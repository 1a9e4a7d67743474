#pragma once
// Reading one GGUF file: a header with key-value pairs and tensor entries, then data. Versions 2 and 3, little-endian.
// The file is mapped and trusted in nothing: counts, lengths, kinds, alignment, shapes, types and places are checked
// against the file's size before a value or a tensor is handed out.
// Source: the GGUF specification in the ggml repository's documentation.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/gguf/metadata.h"
#include "convert/gguf/types.h"
#include "ggmlx/core/buffer.h"
#include "ggmlx/core/shape.h"

namespace convert {

struct GgufTensor {
    std::string_view name;
    const GgufTypeInfo* type = nullptr;
    ggmlx::Shape shape;       ///< outermost first (the file has it the other way round)
    uint64_t offset = 0;      ///< from the start of the file
    uint64_t size_bytes = 0;  ///< whole blocks
};

class GgufFile {
  public:
    /// Far more than any model has; with them a header takes at most 64 MiB of memory beyond the file itself.
    static constexpr uint64_t kMaxKeys = 1 << 16, kMaxTensors = 1 << 17;

    /// Throws io; corrupt_file, naming file, key or tensor and value; unsupported for version 1, versions after 3,
    /// big-endian files and element types that this version does not know.
    static GgufFile open(const std::string& path);
    /// The same for bytes in memory, which must outlive the result (tests, fuzzing).
    static GgufFile from_bytes(std::span<const std::byte> bytes, std::string path);

    const std::string& path() const { return metadata_.path(); }
    const GgufMetadata& metadata() const { return metadata_; }
    /// In the order of the header.
    const std::vector<GgufTensor>& tensors() const { return tensors_; }
    const GgufTensor* find(std::string_view name) const;
    std::span<const std::byte> data(const GgufTensor& tensor) const {
        return bytes_.subspan(tensor.offset, tensor.size_bytes);
    }
    /// The tensor will not be read again: its pages may go.
    void done_with(const GgufTensor& tensor) const noexcept { file_.done_with(tensor.offset, tensor.size_bytes); }

  private:
    explicit GgufFile(std::string path) : metadata_(std::move(path)) {}
    void parse();

    ggmlx::MappedFile file_;
    std::span<const std::byte> bytes_;
    GgufMetadata metadata_;
    std::vector<GgufTensor> tensors_;
    std::map<std::string_view, size_t> by_name_;
};

}  // namespace convert
