#pragma once
// Owners of bytes: Buffer (aligned host memory) and MappedFile (a file seen as memory).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ggmlx/core/descriptor.h"

namespace ggmlx {

/// Gives mapped memory back.
struct Unmap {
    size_t mapped_bytes = 0;
    void operator()(const std::byte* p) const noexcept;
};

/// Move-only owner of zeroed host memory, aligned to 64 bytes (to 2 MB, with huge pages advised, from 4 MB on).
class Buffer {
  public:
    Buffer() = default;
    /// Throws out_of_memory, naming the size.
    explicit Buffer(size_t size_bytes);
    std::byte* data() { return data_.get(); }
    const std::byte* data() const { return data_.get(); }
    size_t size() const { return size_; }
    std::span<std::byte> bytes() { return {data(), size_}; }
    std::span<const std::byte> bytes() const { return {data(), size_}; }

  private:
    std::unique_ptr<std::byte, Unmap> data_;
    size_t size_ = 0;
};

/// A whole file mapped read-only. Move-only; the bytes are valid while it lives.
class MappedFile {
  public:
    MappedFile() = default;
    /// Throws io with the path and the system's reason. A directory or a special file is refused; an empty file has no
    /// bytes.
    explicit MappedFile(const std::string& path);
    std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
    uint64_t size() const { return size_; }
    const std::string& path() const { return path_; }
    /// Of the open file; -1 if there is none.
    int descriptor() const { return file_.fd(); }
    /// Tells the kernel that the range will be read soon (read-ahead), or not again (its pages may go).
    void will_need(uint64_t offset, uint64_t size_bytes) const noexcept;
    void done_with(uint64_t offset, uint64_t size_bytes) const noexcept;

  private:
    Descriptor file_;
    std::unique_ptr<const std::byte, Unmap> data_;
    size_t size_ = 0;
    std::string path_;
};

}  // namespace ggmlx
