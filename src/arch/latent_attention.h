#pragma once
// Multi-head latent attention. The cache holds one row per token: the normalised latent, and behind it the rotated part
// of the key that all heads share. In the absorbed form that is used here a head never makes its keys and values: its
// query is brought into the space of the latent (attn_k_b), attention weighs the latents, and attn_v_b makes the head's
// value of their sum. The checkpoint's kv_b_proj holds both matrices.
// Source: DeepSeek-AI 2024, arXiv:2405.04434.

#include "src/arch/blocks.h"
#include "src/arch/tensor_table.h"

namespace llm {

/// "attn_q" or "attn_q_a", "attn_q_a_norm", "attn_q_b"; "attn_kv_a_mqa", "attn_kv_a_norm", "attn_k_b" [n_head, kv_rank,
/// nope_dim], "attn_v_b" [n_head, v_dim, kv_rank], "attn_output".
void add_latent_attention(TensorTable& table, const ModelConfig& config);

/// As attention_block.
ggmlx::Tensor latent_attention_block(const BuildContext& c, const StepTensors& step, int64_t il, ggmlx::Tensor x);

}  // namespace llm
