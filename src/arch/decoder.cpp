#include "src/arch/decoder.h"

#include <fmt/core.h>

#include "src/arch/latent_attention.h"

namespace llm {
namespace {

using ggmlx::Role;

void add_attention(TensorTable& table, const ModelConfig& c) {
    using Norm = ModelConfig::QkNorm;
    const int64_t n_q = c.n_head * c.head_dim, n_kv = c.n_head_kv * c.head_dim;
    table.linear("attn_q", "self_attn.q_proj", n_q, c.n_embd, Role::Attention, c.attention_bias);
    table.linear("attn_k", "self_attn.k_proj", n_kv, c.n_embd, Role::Attention, c.attention_bias);
    table.linear("attn_v", "self_attn.v_proj", n_kv, c.n_embd, Role::Attention, c.attention_bias);
    if (c.qk_norm != Norm::None) {
        const bool whole = c.qk_norm == Norm::Whole;
        table.vector("attn_q_norm.weight", "self_attn.q_norm.weight", whole ? n_q : c.head_dim, Role::Norm);
        table.vector("attn_k_norm.weight", "self_attn.k_norm.weight", whole ? n_kv : c.head_dim, Role::Norm);
    }
    if (c.attention_sinks) table.vector("attn_sinks.weight", "self_attn.sinks", c.n_head, Role::Attention);
    table.linear("attn_output", "self_attn.o_proj", c.n_embd, n_q, Role::Attention, c.attention_out_bias);
}

void add_feed_forward(TensorTable& table, const ModelConfig& c) {
    table.linear("ffn_gate", "mlp.gate_proj", c.n_ff, c.n_embd, Role::Dense, c.mlp_bias);
    table.linear("ffn_up", "mlp.up_proj", c.n_ff, c.n_embd, Role::Dense, c.mlp_bias);
    table.linear("ffn_down", "mlp.down_proj", c.n_embd, c.n_ff, Role::Dense, c.mlp_bias);
}

void add_layer(TensorTable& table, const ModelConfig& c, int64_t il, const MixtureNames& names) {
    table.set_prefix(fmt::format("blk.{}.", il), fmt::format("model.layers.{}.", il));
    table.vector("attn_norm.weight", "input_layernorm.weight", c.n_embd, Role::Norm);
    if (c.latent)
        add_latent_attention(table, c);
    else
        add_attention(table, c);
    table.vector("ffn_norm.weight", "post_attention_layernorm.weight", c.n_embd, Role::Norm);
    if (c.mixture.in_layer(il))
        add_mixture(table, c, names);
    else
        add_feed_forward(table, c);
}

}  // namespace

std::vector<TensorSpec> decoder_tensors(const ModelConfig& c, const MixtureNames& names) {
    TensorTable table;
    table.matrix("token_embd.weight", "model.embed_tokens.weight", c.n_vocab, c.n_embd, Role::Embedding);
    if (c.tie_embeddings) table.tied("lm_head.weight");
    for (int64_t il = 0; il < c.n_layer; ++il) add_layer(table, c, il, names);
    table.set_prefix("", "");
    table.vector("output_norm.weight", "model.norm.weight", c.n_embd, Role::Norm);
    if (!c.tie_embeddings) table.matrix("output.weight", "lm_head.weight", c.n_vocab, c.n_embd, Role::Output);
    return table.take();
}

std::vector<TensorSpec> dense_tensors(const ModelConfig& config) { return decoder_tensors(config, {}); }

std::vector<KvLayer> decoder_kv_layers(const ModelConfig& config) {
    std::vector<KvLayer> layers;
    for (int64_t il = 0; il < config.n_layer; ++il) {
        if (const LatentAttention& a = config.latent)
            layers.push_back({1, a.kv_rank + a.rope_dim, 0, fmt::format("blk.{}.attn_kv_a_mqa.weight", il)});
        else
            layers.push_back(
                {config.n_head_kv, config.head_dim, config.head_dim, fmt::format("blk.{}.attn_k.weight", il)});
    }
    return layers;
}

}  // namespace llm
