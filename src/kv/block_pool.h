#pragma once
// BlockPool: which cache blocks are free, and how many owners each of the others has. Sequences and snapshots own
// blocks together; a block with more than one owner is not written (paged_cache.h copies it first).

#include <cstddef>
#include <cstdint>
#include <vector>

namespace llm {

using BlockId = int32_t;

/// Not thread safe.
class BlockPool {
  public:
    /// All blocks free.
    explicit BlockPool(int64_t n_blocks);

    /// A block with one owner. Throws out_of_memory if none is free; callers that must not fail half-way ask n_free()
    /// first.
    BlockId allocate();
    /// One owner more, one less; a block without owners is free again.
    void retain(BlockId block);
    void release(BlockId block);

    int64_t n_blocks() const { return static_cast<int64_t>(owners_.size()); }
    int64_t n_free() const { return static_cast<int64_t>(free_.size()); }
    int32_t n_owners(BlockId block) const { return owners_[static_cast<size_t>(block)]; }

  private:
    std::vector<int32_t> owners_;
    std::vector<BlockId> free_;  // the last one is handed out next
};

}  // namespace llm
