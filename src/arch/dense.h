#pragma once
// The tensors of a dense transformer as Llama introduced it: pre-norm attention with rotary positions and grouped
// key-value heads, then a gated feed-forward network. Families differ by flags of ModelConfig and by the norms of q and
// k.

#include <string_view>
#include <vector>

#include "src/arch/arch.h"

namespace llm {

/// All tensors, in the order of computation: embedding, layers, norm, head. With tied embeddings there is no
/// output.weight: the head is token_embd.weight.
std::vector<TensorSpec> dense_tensors(const ModelConfig& config);

/// The same with attn_q_norm and attn_k_norm, [head_dim], in every layer.
std::vector<TensorSpec> dense_tensors_with_qk_norm(const ModelConfig& config);

/// One K and V of n_head_kv heads in every layer, beside that layer's attn_k.weight.
std::vector<KvLayer> dense_kv_layers(const ModelConfig& config);

/// Rotary tables that old checkpoints carry; they follow from config.json.
inline constexpr std::string_view kRotaryTables[] = {"model.layers.*.self_attn.rotary_emb.inv_freq",
                                                     "model.rotary_emb.inv_freq"};

}  // namespace llm
