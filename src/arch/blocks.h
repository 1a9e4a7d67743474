#pragma once
// Pieces of graphs that several families share: linear layers, attention over the paged cache, the gated feed-forward
// network, the head, and the decoder made of them. Tensors are found by the names that the family's table
// (decoder.h) gives them; a piece whose bias or norm is not in the model leaves it out.

#include <string>
#include <string_view>

#include "src/arch/arch.h"

namespace llm {

/// What all layers of a step share: computed once, at the start.
struct StepTensors {
    ggmlx::Tensor rope;         ///< [n_tokens, n_rot / 2, 2] cos and sin of every row's position
    ggmlx::Tensor slots;        ///< [n_tokens] i32, the cache's input "kv.slots"
    ggmlx::Tensor block_table;  ///< [n_sequences, max_blocks] i32, the cache's input "kv.block_table"
};
StepTensors step_tensors(const BuildContext& c);

/// RMS norm with the weight of that name.
ggmlx::Tensor norm(const BuildContext& c, const std::string& weight, ggmlx::Tensor x);

/// Gives a value a name by which it can be dumped.
ggmlx::Tensor named(const BuildContext& c, ggmlx::Tensor value, std::string name);

/// y = x · Wᵀ + b with NAME.weight and, if the model has it, NAME.bias.  x: [n_tokens, n_in];  y: [n_tokens, n_out].
ggmlx::Tensor linear(const BuildContext& c, std::string_view name, ggmlx::Tensor x);

/// Self-attention of layer il, causal, with grouped key-value heads and rotary positions, over the layer's paged cache;
/// reads "blk.IL.attn_{q,k,v,output}", "blk.IL.attn_{q,k}_norm.weight" where the model normalises every head or all of
/// q and k before the rotation, and "blk.IL.attn_sinks.weight". The rotation may be of the first part of a head.  x:
/// [n_tokens, n_embd], already normalised;  y: [n_tokens, n_embd]. Source: Vaswani et al. 2017, arXiv:1706.03762; Su et
/// al. 2021, arXiv:2104.09864; per-head norms: arXiv:2505.09388.
ggmlx::Tensor attention_block(const BuildContext& c, const StepTensors& step, int64_t il, ggmlx::Tensor x);

/// down(silu(gate x) · up x) of layer il with "blk.IL.ffn_{gate,up,down}".  x: [n_tokens, n_embd], already normalised.
/// Source: Shazeer 2020, arXiv:2002.05202.
ggmlx::Tensor ffn_block(const BuildContext& c, int64_t il, ggmlx::Tensor x);

/// Final norm and head of the rows in c.outputs only: "output_norm.weight", then "output.weight" or, with tied
/// embeddings, "token_embd.weight".  x: [n_tokens, n_embd];  logits: [n_outputs, n_vocab].
ggmlx::Tensor output_head(const BuildContext& c, ggmlx::Tensor x);

/// The pre-norm transformer, from ids to logits: attention (latent_attention.h where the model has it) and a
/// feed-forward network or a mixture (mixture.h) in each layer. Values that can be dumped: "embd", and for every layer
/// "blk.N.attn_norm_out", "attn_out", "ffn_in" (the stream after attention), "ffn_norm_out", "ffn_out" and "out" (the
/// stream after the layer); then "output_norm_out" and "logits".
ggmlx::Tensor build_decoder(const BuildContext& c);

}  // namespace llm
