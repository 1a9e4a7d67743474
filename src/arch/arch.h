#pragma once
// Architectures: for every model family, which tensors it has (name, shape, role, Hugging Face names), what it caches,
// and its graph. The converter reads the first, the runtime all three, so they cannot disagree.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ggmlx/core/tensor.h"
#include "ggmlx/graph/graph.h"
#include "src/config.h"
#include "src/kv/cache.h"

namespace llm {

/// A checkpoint tensor that holds several slices of one of ours, or one in another order: element (row, column) of
/// slice i is its element first + i · slice_stride + row · row_stride + column · column_stride, counted row-major. The
/// slices are the matrices of a tensor of rank 3; any other tensor is one.
struct PackedSource {
    enum class Form {
        Plain,  ///< values of a type that a matrix can have
        MXFP4,  ///< NAME_blocks u8 [.., n / 32, 16], two codes a byte, the first in its low half, and NAME_scales u8
                ///< [.., n / 32]; column_stride is 1
    };
    std::string name;
    std::vector<int64_t> shape;  ///< the checkpoint's (MXFP4: as if unpacked), at most rank 3
    Form form = Form::Plain;
    int64_t first = 0, slice_stride = 0, row_stride = 0, column_stride = 1;
};

/// One tensor of the model file and where it comes from.
struct TensorSpec {
    std::string name;    ///< "blk.3.attn_q.weight"
    ggmlx::Shape shape;  ///< outermost first
    ggmlx::Role role = ggmlx::Role::Dense;
    /// Hugging Face names: one; for a stacked tensor one per expert, in order. Empty if only packed forms exist.
    std::vector<std::string> sources;
    /// Matrices may take block types; vectors, norms and routers stay f32.
    bool quantizable = false;
    /// A copy of this tensor that the checkpoint may hold under another name; it is not stored (tied embeddings).
    std::string tied_source;
    /// Other forms in which checkpoints have it; the first that a checkpoint holds counts.
    std::vector<PackedSource> packed = {};
};

/// Everything a build function may use.
struct BuildContext {
    ggmlx::Graph& graph;
    const ModelConfig& config;
    const ggmlx::TensorSet& tensors;  ///< weights by name; states "blk.3.cache_k", "blk.3.cache_v"
    StepShape shape;
    // Common inputs, already declared:
    ggmlx::Tensor ids;        ///< [n_tokens] i32; -1: padding
    ggmlx::Tensor positions;  ///< [n_tokens] i32
    ggmlx::Tensor sequence;   ///< [n_tokens] i32 row of the block tables; -1: padding
    ggmlx::Tensor outputs;    ///< [n_outputs] i32 row numbers that want logits; -1: padding
};

struct Architecture {
    std::string_view name;  ///< config.json's model_type
    std::vector<TensorSpec> (*tensors)(const ModelConfig&);
    std::vector<KvLayer> (*kv_layers)(const ModelConfig&);
    /// Appends the whole forward pass and returns the logits [n_outputs, n_vocab].
    ggmlx::Tensor (*build)(const BuildContext&);
    /// Checkpoint tensors that are known and not needed (rotary tables that are recomputed …), as patterns with `*`.
    std::span<const std::string_view> ignored_sources;
};

/// Throws unsupported, listing the known ones.
const Architecture& architecture(std::string_view model_type);
std::span<const Architecture* const> all_architectures();

}  // namespace llm
