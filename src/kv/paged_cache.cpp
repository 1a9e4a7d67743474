#include "src/kv/paged_cache.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "ggmlx/core/error.h"
#include "ggmlx/core/math.h"

namespace llm {

using ggmlx::DType;
using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

namespace {

constexpr int64_t kBlockLen = PagedCache::kBlockLen;

int64_t blocks_for(int64_t n_tokens) { return ggmlx::ceil_div(n_tokens, kBlockLen); }

/// Owns its blocks together with the sequence it was taken from.
class PagedSnapshot final : public CacheSnapshot {
  public:
    PagedSnapshot(std::shared_ptr<BlockPool> pool, std::vector<BlockId> blocks, int64_t n_tokens)
        : pool_(std::move(pool)), blocks_(std::move(blocks)), n_tokens_(n_tokens) {
        for (BlockId b : blocks_) pool_->retain(b);
    }
    ~PagedSnapshot() override {
        for (BlockId b : blocks_) pool_->release(b);
    }
    PagedSnapshot(const PagedSnapshot&) = delete;
    PagedSnapshot& operator=(const PagedSnapshot&) = delete;

    int64_t n_tokens() const override { return n_tokens_; }
    const BlockPool* pool() const { return pool_.get(); }
    const std::vector<BlockId>& blocks() const { return blocks_; }

  private:
    std::shared_ptr<BlockPool> pool_;
    std::vector<BlockId> blocks_;
    int64_t n_tokens_;
};

void check_type(DType dtype, const char* flag) {
    require(ggmlx::is_cache_type(dtype), ErrorKind::InvalidArgument, "{}: a cache cannot be {}; choose one of {}", flag,
            ggmlx::name(dtype), ggmlx::kCacheTypeNames);
}

PagedCacheLayout checked(PagedCacheLayout layout) {
    check_type(layout.k, "--cache-type-k");
    check_type(layout.v, "--cache-type-v");
    require(layout.n_ctx >= 1 && layout.n_sequences >= 1, ErrorKind::InvalidArgument,
            "a KV cache needs at least one token and one sequence, not n_ctx {} and n_sequences {}", layout.n_ctx,
            layout.n_sequences);
    constexpr int64_t kMaxSlots = std::numeric_limits<int32_t>::max();
    require(
        layout.n_ctx <= kMaxSlots && layout.n_sequences <= kMaxSlots && layout.total_blocks() <= kMaxSlots / kBlockLen,
        ErrorKind::InvalidArgument, "a KV cache of {} sequences with {} tokens each is too large: at most {} tokens",
        layout.n_sequences, layout.n_ctx, kMaxSlots);
    layout.n_blocks = layout.total_blocks();
    return layout;
}

}  // namespace

int64_t PagedCacheLayout::max_blocks_per_sequence() const { return blocks_for(n_ctx); }
int64_t PagedCacheLayout::total_blocks() const {
    return n_blocks > 0 ? n_blocks : n_sequences * max_blocks_per_sequence();
}

PagedCache::PagedCache(ggmlx::TensorSet& tensors, std::span<const KvLayer> layers, PagedCacheLayout layout)
    : layout_(checked(layout)),
      pool_(std::make_shared<BlockPool>(layout_.n_blocks)),
      sequences_(static_cast<size_t>(layout_.n_sequences)) {
    const auto add = [&](size_t il, const char* part, DType dtype, int64_t n_head, int64_t head_dim) {
        const ggmlx::Shape shape{layout_.n_blocks, n_head, kBlockLen, head_dim};
        states_.push_back(tensors.add(fmt::format("blk.{}.cache_{}", il, part), dtype, shape, ggmlx::Role::Cache,
                                      ggmlx::TensorKind::State));
        size_bytes_ += static_cast<uint64_t>(ggmlx::storage_bytes(dtype, shape));
    };
    for (size_t il = 0; il < layers.size(); ++il) {
        add(il, "k", layout_.k, layers[il].n_head_kv, layers[il].head_dim_k);
        if (layers[il].head_dim_v > 0) add(il, "v", layout_.v, layers[il].n_head_kv, layers[il].head_dim_v);
    }
}

const PagedCache::Sequence& PagedCache::at(SequenceId sequence) const {
    const bool valid = sequence >= 0 && static_cast<size_t>(sequence) < sequences_.size() &&
                       sequences_[static_cast<size_t>(sequence)].open;
    require(valid, ErrorKind::InvalidArgument, "KV cache: sequence {} is not open", sequence);
    return sequences_[static_cast<size_t>(sequence)];
}

PagedCache::Sequence& PagedCache::at(SequenceId sequence) {
    return const_cast<Sequence&>(static_cast<const PagedCache&>(*this).at(sequence));
}

void PagedCache::drop_blocks(Sequence& sequence, size_t keep) {
    for (size_t b = keep; b < sequence.blocks.size(); ++b) pool_->release(sequence.blocks[b]);
    sequence.blocks.resize(std::min(keep, sequence.blocks.size()));
}

SequenceId PagedCache::open() {
    const auto it = std::find_if(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return !s.open; });
    require(it != sequences_.end(), ErrorKind::OutOfMemory, "all {} sequences of the KV cache are open",
            sequences_.size());
    it->open = true;
    return static_cast<SequenceId>(it - sequences_.begin());
}

void PagedCache::close(SequenceId sequence) {
    Sequence& s = at(sequence);
    drop_blocks(s, 0);
    s = Sequence{};
}

int64_t PagedCache::length(SequenceId sequence) const { return at(sequence).length; }

std::span<const BlockId> PagedCache::blocks(SequenceId sequence) const { return at(sequence).blocks; }

void PagedCache::extend(SequenceId sequence, int64_t n_tokens) {
    Sequence& s = at(sequence);
    require(n_tokens >= 0, ErrorKind::InvalidArgument, "KV cache: cannot extend by {} tokens", n_tokens);
    require(n_tokens <= layout_.n_ctx - s.length, ErrorKind::OutOfMemory,
            "context full: {} tokens are in it, {} more do not fit into the context of {} (-c)", s.length, n_tokens,
            layout_.n_ctx);
    if (n_tokens == 0) return;
    const bool writes_into_last = s.length % kBlockLen != 0;
    const bool must_copy = writes_into_last && pool_->n_owners(s.blocks.back()) > 1;
    const int64_t n_new = blocks_for(s.length + n_tokens) - static_cast<int64_t>(s.blocks.size());
    const int64_t n_needed = n_new + (must_copy ? 1 : 0);
    require(n_needed <= pool_->n_free(), ErrorKind::OutOfMemory,
            "context full: {} more tokens need {} blocks of {} tokens, but only {} of the KV cache's {} are free",
            n_tokens, n_needed, kBlockLen, pool_->n_free(), pool_->n_blocks());
    if (must_copy) {
        const BlockId shared = s.blocks.back();
        s.blocks.back() = pool_->allocate();
        copies_.push_back({shared, s.blocks.back()});
        pool_->release(shared);
    }
    for (int64_t i = 0; i < n_new; ++i) s.blocks.push_back(pool_->allocate());
    s.length += n_tokens;
}

bool PagedCache::can_truncate(SequenceId sequence, int64_t n_tokens) const {
    return n_tokens >= 0 && n_tokens <= at(sequence).length;
}

void PagedCache::truncate(SequenceId sequence, int64_t n_tokens) {
    require(can_truncate(sequence, n_tokens), ErrorKind::InvalidArgument,
            "KV cache: a sequence of {} tokens cannot be cut to {}", length(sequence), n_tokens);
    Sequence& s = at(sequence);
    drop_blocks(s, static_cast<size_t>(blocks_for(n_tokens)));
    s.length = n_tokens;
}

std::unique_ptr<CacheSnapshot> PagedCache::snapshot(SequenceId sequence) const {
    const Sequence& s = at(sequence);
    return std::make_unique<PagedSnapshot>(pool_, s.blocks, s.length);
}

void PagedCache::restore(SequenceId sequence, const CacheSnapshot& snapshot) {
    Sequence& s = at(sequence);
    const auto* paged = dynamic_cast<const PagedSnapshot*>(&snapshot);
    require(paged != nullptr && paged->pool() == pool_.get(), ErrorKind::InvalidArgument,
            "KV cache: the snapshot belongs to another cache");
    for (BlockId b : paged->blocks()) pool_->retain(b);
    drop_blocks(s, 0);
    s.blocks = paged->blocks();
    s.length = paged->n_tokens();
}

std::vector<BlockCopy> PagedCache::take_copies() { return std::exchange(copies_, {}); }

void PagedCache::add_inputs(ggmlx::Graph& graph, const StepShape& shape) const {
    graph.input("kv.slots", DType::I32, {shape.n_tokens});
    graph.input("kv.block_table", DType::I32, {shape.n_sequences, layout_.max_blocks_per_sequence()});
}

void PagedCache::fill_inputs(std::span<const SequenceSpan> spans, const StepShape& shape, StepInputs& inputs) const {
    const auto n_columns = static_cast<size_t>(layout_.max_blocks_per_sequence());
    require(static_cast<int64_t>(spans.size()) <= shape.n_sequences, ErrorKind::InvalidArgument,
            "KV cache: {} sequences in a step made for {}", spans.size(), shape.n_sequences);
    std::vector<int32_t> slots;
    std::vector<int32_t> table(static_cast<size_t>(shape.n_sequences) * n_columns, -1);
    for (size_t row = 0; row < spans.size(); ++row) {
        const SequenceSpan& span = spans[row];
        const Sequence& s = at(span.sequence);
        require(span.first_pos >= 0 && span.n_tokens >= 0 && span.first_pos + span.n_tokens <= s.length,
                ErrorKind::InvalidArgument, "KV cache: positions {} to {} of a sequence of {} tokens", span.first_pos,
                span.first_pos + span.n_tokens, s.length);
        std::copy(s.blocks.begin(), s.blocks.end(), table.begin() + static_cast<std::ptrdiff_t>(row * n_columns));
        for (int64_t pos = span.first_pos; pos < span.first_pos + span.n_tokens; ++pos) {
            const BlockId block = s.blocks[static_cast<size_t>(pos / kBlockLen)];
            slots.push_back(static_cast<int32_t>(block * kBlockLen + pos % kBlockLen));
        }
    }
    require(static_cast<int64_t>(slots.size()) <= shape.n_tokens, ErrorKind::InvalidArgument,
            "KV cache: {} tokens in a step made for {}", slots.size(), shape.n_tokens);
    slots.resize(static_cast<size_t>(shape.n_tokens), -1);
    inputs["kv.slots"] = std::move(slots);
    inputs["kv.block_table"] = std::move(table);
}

}  // namespace llm
