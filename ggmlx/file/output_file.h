#pragma once
// A file that appears under its name only when it is complete.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ggmlx/core/descriptor.h"

namespace ggmlx {

/// Owns PATH.partial while it is written. Move and copy are not needed. write_at may be called from several threads.
class OutputFile {
  public:
    /// Creates PATH.partial and locks it. Throws io: with needed and free bytes if the folder has not `needed_bytes`
    /// free, if PATH is a directory, if the folder cannot be written, if another writer holds PATH.partial.
    OutputFile(const std::string& path, uint64_t needed_bytes);
    ~OutputFile();  ///< removes PATH.partial unless publish() succeeded
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    /// Throws io with path, offset and the system's reason; a file size limit is reported, never a signal.
    void write_at(uint64_t offset, std::span<const std::byte> bytes);
    /// Makes everything durable, then visible: fsync, rename over PATH, fsync of the folder. Nothing can be written
    /// afterwards.
    void publish();

  private:
    void lock_partial();
    [[noreturn]] void fail_io(const char* doing) const;

    std::string path_, partial_;
    Descriptor file_;
    bool owns_partial_ = false;
};

}  // namespace ggmlx
