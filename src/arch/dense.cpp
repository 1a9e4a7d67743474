#include "src/arch/dense.h"

#include <fmt/core.h>

#include <utility>

namespace llm {
namespace {

using ggmlx::Role;
using ggmlx::Shape;

/// Collects specs; a prefix pair leads every name: "blk.3." here, "model.layers.3." in the checkpoint.
class TensorTable {
  public:
    void set_prefix(std::string here, std::string there) {
        here_ = std::move(here);
        there_ = std::move(there);
    }
    void matrix(std::string_view name, std::string_view source, int64_t n_out, int64_t n_in, Role role) {
        add(name, source, {n_out, n_in}, role, true);
    }
    void vector(std::string_view name, std::string_view source, int64_t n, Role role) {
        add(name, source, {n}, role, false);
    }
    /// A matrix NAME.weight and, if wanted, its NAME.bias.
    void linear(std::string_view name, std::string_view source, int64_t n_out, int64_t n_in, Role role, bool bias) {
        matrix(fmt::format("{}.weight", name), fmt::format("{}.weight", source), n_out, n_in, role);
        if (bias) vector(fmt::format("{}.bias", name), fmt::format("{}.bias", source), n_out, role);
    }
    /// The last tensor may occur in the checkpoint a second time, as `source`.
    void tied(std::string source) { specs_.back().tied_source = std::move(source); }
    std::vector<TensorSpec> take() { return std::move(specs_); }

  private:
    void add(std::string_view name, std::string_view source, Shape shape, Role role, bool quantizable) {
        specs_.push_back({.name = here_ + std::string(name),
                          .shape = shape,
                          .role = role,
                          .sources = {there_ + std::string(source)},
                          .quantizable = quantizable,
                          .tied_source = {}});
    }

    std::string here_, there_;
    std::vector<TensorSpec> specs_;
};

void add_attention(TensorTable& table, const ModelConfig& c, bool qk_norm) {
    const int64_t n_q = c.n_head * c.head_dim, n_kv = c.n_head_kv * c.head_dim;
    table.vector("attn_norm.weight", "input_layernorm.weight", c.n_embd, Role::Norm);
    table.linear("attn_q", "self_attn.q_proj", n_q, c.n_embd, Role::Attention, c.attention_bias);
    table.linear("attn_k", "self_attn.k_proj", n_kv, c.n_embd, Role::Attention, c.attention_bias);
    table.linear("attn_v", "self_attn.v_proj", n_kv, c.n_embd, Role::Attention, c.attention_bias);
    if (qk_norm) {
        table.vector("attn_q_norm.weight", "self_attn.q_norm.weight", c.head_dim, Role::Norm);
        table.vector("attn_k_norm.weight", "self_attn.k_norm.weight", c.head_dim, Role::Norm);
    }
    table.linear("attn_output", "self_attn.o_proj", c.n_embd, n_q, Role::Attention, c.attention_out_bias);
}

void add_feed_forward(TensorTable& table, const ModelConfig& c) {
    table.vector("ffn_norm.weight", "post_attention_layernorm.weight", c.n_embd, Role::Norm);
    table.linear("ffn_gate", "mlp.gate_proj", c.n_ff, c.n_embd, Role::Dense, c.mlp_bias);
    table.linear("ffn_up", "mlp.up_proj", c.n_ff, c.n_embd, Role::Dense, c.mlp_bias);
    table.linear("ffn_down", "mlp.down_proj", c.n_embd, c.n_ff, Role::Dense, c.mlp_bias);
}

std::vector<TensorSpec> tensors(const ModelConfig& c, bool qk_norm) {
    TensorTable table;
    table.matrix("token_embd.weight", "model.embed_tokens.weight", c.n_vocab, c.n_embd, Role::Embedding);
    if (c.tie_embeddings) table.tied("lm_head.weight");
    for (int64_t il = 0; il < c.n_layer; ++il) {
        table.set_prefix(fmt::format("blk.{}.", il), fmt::format("model.layers.{}.", il));
        add_attention(table, c, qk_norm);
        add_feed_forward(table, c);
    }
    table.set_prefix("", "");
    table.vector("output_norm.weight", "model.norm.weight", c.n_embd, Role::Norm);
    if (!c.tie_embeddings) table.matrix("output.weight", "lm_head.weight", c.n_vocab, c.n_embd, Role::Output);
    return table.take();
}

}  // namespace

std::vector<TensorSpec> dense_tensors(const ModelConfig& config) { return tensors(config, false); }
std::vector<TensorSpec> dense_tensors_with_qk_norm(const ModelConfig& config) { return tensors(config, true); }

std::vector<KvLayer> dense_kv_layers(const ModelConfig& config) {
    std::vector<KvLayer> layers;
    for (int64_t il = 0; il < config.n_layer; ++il)
        layers.push_back({config.n_head_kv, config.head_dim, config.head_dim, fmt::format("blk.{}.attn_k.weight", il)});
    return layers;
}

}  // namespace llm
