#pragma once
// Reading one .safetensors file: 8 bytes of header length, a JSON header, data. The file is mapped and trusted in
// nothing: lengths, types, duplicates, holes and overlaps are checked before a tensor is handed out.
// Source: the format description of Hugging Face safetensors.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ggmlx/core/buffer.h"

namespace convert {

/// Element types of the format; names as in files.
enum class SourceType {
    Bool,
    U8,
    I8,
    F8_E5M2,
    F8_E4M3,
    F8_E8M0,
    I16,
    U16,
    F16,
    BF16,
    I32,
    U32,
    F32,
    I64,
    U64,
    F64,
    C64
};
std::string_view name(SourceType type);
int64_t element_bytes(SourceType type);

struct SourceTensor {
    std::string name;
    SourceType type = SourceType::F32;
    std::vector<int64_t> shape;  ///< outermost first; any rank up to 8
    uint64_t offset = 0;         ///< from the start of the file
    uint64_t size_bytes = 0;

    int64_t n_elements() const;
    std::string shape_text() const;  ///< "[4096, 2048]"
};

class SafetensorsFile {
  public:
    /// Longest header that is read. A model of a million tensors needs about 150 MB.
    static constexpr uint64_t kMaxHeaderBytes = uint64_t{512} << 20;

    /// Throws io, or corrupt_file naming file, tensor and value. Metadata must be strings, as the format says, and is
    /// ignored.
    static SafetensorsFile open(const std::string& path);
    /// The same for bytes in memory, which must outlive the result (tests, fuzzing).
    static SafetensorsFile from_bytes(std::span<const std::byte> bytes, std::string path);

    const std::string& path() const { return path_; }
    /// In the order of their data.
    const std::vector<SourceTensor>& tensors() const { return tensors_; }
    const SourceTensor* find(std::string_view name) const;
    std::span<const std::byte> data(const SourceTensor& tensor) const {
        return bytes_.subspan(tensor.offset, tensor.size_bytes);
    }
    /// The tensor will not be read again: its pages may go.
    void done_with(const SourceTensor& tensor) const noexcept { file_.done_with(tensor.offset, tensor.size_bytes); }

  private:
    void parse();

    ggmlx::MappedFile file_;
    std::span<const std::byte> bytes_;
    std::string path_;
    std::vector<SourceTensor> tensors_;
    std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace convert
