#include "src/kv/block_pool.h"

#include "ggmlx/core/error.h"

namespace llm {

using ggmlx::ErrorKind;
using ggmlx::require;

BlockPool::BlockPool(int64_t n_blocks) : owners_(static_cast<size_t>(n_blocks), 0) {
    free_.reserve(owners_.size());
    for (int64_t b = n_blocks; b-- > 0;) free_.push_back(static_cast<BlockId>(b));
}

BlockId BlockPool::allocate() {
    require(!free_.empty(), ErrorKind::OutOfMemory, "all {} blocks of the KV cache are in use", n_blocks());
    const BlockId block = free_.back();
    free_.pop_back();
    owners_[static_cast<size_t>(block)] = 1;
    return block;
}

void BlockPool::retain(BlockId block) { ++owners_[static_cast<size_t>(block)]; }

void BlockPool::release(BlockId block) {
    if (--owners_[static_cast<size_t>(block)] == 0) free_.push_back(block);
}

}  // namespace llm
