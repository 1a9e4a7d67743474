#pragma once
// PagedCache: keys and values of every token, in blocks of 128 tokens found through block tables. Sequences and
// snapshots share blocks by reference count; a shared block is copied before a sequence writes into it.
// Source: the block table is that of PagedAttention, Kwon et al. 2023, arXiv:2309.06180.

#include <memory>
#include <optional>
#include <vector>

#include "src/kv/block_pool.h"
#include "src/kv/cache.h"

namespace llm {

/// Sizes and types of a paged cache.
struct PagedCacheLayout {
    int64_t n_ctx = 0;        ///< longest sequence, in tokens
    int64_t n_sequences = 1;  ///< open at the same time
    int64_t n_blocks = 0;     ///< blocks shared by all sequences; 0: enough for every sequence at n_ctx
    ggmlx::DType k = ggmlx::DType::F16;
    ggmlx::DType v = ggmlx::DType::F16;

    int64_t max_blocks_per_sequence() const;
    int64_t total_blocks() const;
};

class PagedCache final : public Cache {
  public:
    /// Tokens per block.
    static constexpr int64_t kBlockLen = 128;

    /// Adds the States "blk.N.cache_k" [n_blocks, n_head_kv, 128, head_dim_k] and, unless head_dim_v is 0,
    /// "blk.N.cache_v" of every layer to `tensors`. Throws invalid_argument for a type that no cache can have
    /// (ggmlx::is_cache_type), and for sizes below 1 or beyond what i32 slots can address.
    PagedCache(ggmlx::TensorSet& tensors, std::span<const KvLayer> layers, PagedCacheLayout layout);

    uint64_t size_bytes() const override { return size_bytes_; }
    SequenceId open() override;
    void close(SequenceId sequence) override;
    int64_t length(SequenceId sequence) const override;
    void extend(SequenceId sequence, int64_t n_tokens) override;
    bool can_truncate(SequenceId sequence, int64_t n_tokens) const override;
    void truncate(SequenceId sequence, int64_t n_tokens) override;
    std::unique_ptr<CacheSnapshot> snapshot(SequenceId sequence) const override;
    /// Also into another sequence of this cache: both then share the blocks (a common prefix). Throws invalid_argument
    /// for a snapshot of another cache.
    void restore(SequenceId sequence, const CacheSnapshot& snapshot) override;

    /// "kv.slots" [n_tokens] i32: block · 128 + row, -1 for padding.
    /// "kv.block_table" [n_sequences, max_blocks_per_sequence] i32: row i belongs to the step's i-th span; -1: no
    /// block.
    void add_inputs(ggmlx::Graph& graph, const StepShape& shape) const override;
    void fill_inputs(std::span<const SequenceSpan> spans, const StepShape& shape, StepInputs& inputs) const override;

    std::vector<BlockCopy> take_copies() override;
    std::span<const ggmlx::Tensor> states() const override { return states_; }

    const PagedCacheLayout& layout() const { return layout_; }
    const BlockPool& pool() const { return *pool_; }
    /// Blocks of a sequence in order of position.
    std::span<const BlockId> blocks(SequenceId sequence) const;

  private:
    struct Sequence {
        bool open = false;
        int64_t length = 0;
        std::vector<BlockId> blocks;
    };
    PagedCacheLayout layout_;
    std::shared_ptr<BlockPool> pool_;  // shared with snapshots, which give their blocks back when they end
    std::vector<Sequence> sequences_;
    std::vector<BlockCopy> copies_;
    std::vector<ggmlx::Tensor> states_;
    uint64_t size_bytes_ = 0;

    Sequence& at(SequenceId sequence);
    const Sequence& at(SequenceId sequence) const;
    void drop_blocks(Sequence& sequence, size_t keep);
};

}  // namespace llm
