#pragma once
// Reads parts of a file into memory past the page cache, so that a model larger than half the memory can be copied into
// memory of its own and is not there twice.

#include <cstdint>
#include <span>

#include "ggmlx/core/buffer.h"

namespace ggmlx {

class DirectReader {
  public:
    /// Source and destination must have the same remainder to this for a read to go past the page cache; at the ends of
    /// such a read, and for all others, it goes through it.
    static constexpr uint64_t kAlignment = 4096;

    /// The file must outlive this. What is read is the file that was mapped, whatever its name means now.
    explicit DirectReader(const MappedFile& file);
    /// Fills dst from `offset` on. Throws io with path, offset and the system's reason, also when the file ends before.
    /// May be called from several threads at once.
    void read(uint64_t offset, std::span<std::byte> dst) const;

  private:
    const MappedFile* file_;
    Descriptor direct_;  ///< not open where the file system has no such reads

    /// Bytes read past the page cache from an aligned offset on; fewer than asked for if that does not work.
    size_t read_direct(uint64_t offset, std::span<std::byte> dst) const;
    void read_cached(uint64_t offset, std::span<std::byte> dst) const;
};

}  // namespace ggmlx
