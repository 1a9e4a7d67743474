#pragma once
// What a model remembers of a sequence, behind one interface: paged keys and values, and later rings, compressed
// entries and running state. A cache owns the bookkeeping; the bytes are State tensors on devices, written and read by
// graphs.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ggmlx/core/tensor.h"
#include "ggmlx/graph/graph.h"

namespace llm {

using SequenceId = int32_t;

/// One K and V per token for a layer; with head_dim_v 0 there is K alone, which is read as V too (latent attention).
struct KvLayer {
    int64_t n_head_kv = 0;
    int64_t head_dim_k = 0, head_dim_v = 0;
    std::string home;  ///< the weight whose device the cache shares unless a rule says otherwise: "blk.3.attn_k.weight"
};

/// Sizes that a step's graph is built for; actual steps are padded to them.
struct StepShape {
    int64_t n_tokens = 1;     ///< rows of the batch
    int64_t n_outputs = 1;    ///< rows that want logits
    int64_t n_sequences = 1;  ///< rows of block tables
    auto operator<=>(const StepShape&) const = default;
};

/// The tokens one sequence adds in a step, at positions first_pos … first_pos + n_tokens - 1.
struct SequenceSpan {
    SequenceId sequence = 0;
    int64_t first_pos = 0;
    int64_t n_tokens = 0;
};

/// Values of i32 graph inputs by name, for one step.
using StepInputs = std::map<std::string, std::vector<int32_t>, std::less<>>;

/// Entry `from` of dim 0 of every State is to be copied to entry `to`.
struct BlockCopy {
    int32_t from = 0, to = 0;
    bool operator==(const BlockCopy&) const = default;
};

/// A copy of a sequence's state that can be put back; what it holds is the cache kind's own business.
class CacheSnapshot {
  public:
    virtual ~CacheSnapshot() = default;
    virtual int64_t n_tokens() const = 0;
};

/// One thread at a time. All memory is reserved when it is made; a sequence is at some length and grows by extend().
class Cache {
  public:
    virtual ~Cache() = default;
    /// Bytes of all its State tensors.
    virtual uint64_t size_bytes() const = 0;

    /// A new empty sequence. Throws out_of_memory when all sequences are taken.
    virtual SequenceId open() = 0;
    virtual void close(SequenceId sequence) = 0;
    virtual int64_t length(SequenceId sequence) const = 0;
    /// Makes room for n more tokens, which the next step writes. Throws out_of_memory ("context full", with numbers);
    /// then nothing changed.
    virtual void extend(SequenceId sequence, int64_t n_tokens) = 0;
    /// True if the sequence can be cut back to its first n tokens without a snapshot. Paged caches always can; running
    /// state cannot.
    virtual bool can_truncate(SequenceId sequence, int64_t n_tokens) const = 0;
    virtual void truncate(SequenceId sequence, int64_t n_tokens) = 0;
    /// A state to return to; cheap for paged caches (length and shared blocks), a copy for running state.
    virtual std::unique_ptr<CacheSnapshot> snapshot(SequenceId sequence) const = 0;
    virtual void restore(SequenceId sequence, const CacheSnapshot& snapshot) = 0;

    /// Its State tensors, in the TensorSet it was made with.
    virtual std::span<const ggmlx::Tensor> states() const = 0;
    /// Copies that calls of extend() made necessary since the last call of this: whoever runs steps does them, in this
    /// order, before the next step.
    virtual std::vector<BlockCopy> take_copies() = 0;

    /// Declares this cache's graph inputs for a step of this shape; architectures find them by name.
    virtual void add_inputs(ggmlx::Graph& graph, const StepShape& shape) const = 0;
    /// Fills them. Spans in the order of their rows in the batch; rows beyond are padding.
    virtual void fill_inputs(std::span<const SequenceSpan> spans, const StepShape& shape, StepInputs& inputs) const = 0;
};

}  // namespace llm
