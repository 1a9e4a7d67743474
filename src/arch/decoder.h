#pragma once
// The tensors of a decoder as Llama introduced it: pre-norm attention with rotary positions over the cache, then a
// gated feed-forward network or a mixture of experts. Families differ by ModelConfig and by the names of experts in
// their checkpoints.

#include <string_view>
#include <vector>

#include "src/arch/arch.h"
#include "src/arch/mixture.h"

namespace llm {

/// All tensors, in the order of computation: embedding, layers, norm, head. With tied embeddings there is no
/// output.weight: the head is token_embd.weight.
std::vector<TensorSpec> decoder_tensors(const ModelConfig& config, const MixtureNames& names);
std::vector<TensorSpec> dense_tensors(const ModelConfig& config);

/// One K and V of n_head_kv heads in every layer, beside that layer's attn_k.weight; with latent attention one row per
/// token instead.
std::vector<KvLayer> decoder_kv_layers(const ModelConfig& config);

/// Rotary tables that old checkpoints carry; they follow from config.json.
inline constexpr std::string_view kRotaryTables[] = {"model.layers.*.self_attn.rotary_emb.inv_freq",
                                                     "model.rotary_emb.inv_freq"};

}  // namespace llm
