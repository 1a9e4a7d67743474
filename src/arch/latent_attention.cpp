#include "src/arch/latent_attention.h"

#include <fmt/core.h>

#include "ggmlx/graph/ops.h"

namespace llm {
namespace {

using ggmlx::Role;
using ggmlx::Tensor;

std::string weight_name(int64_t il, std::string_view part) { return fmt::format("blk.{}.{}", il, part); }

/// Rows of kv_b_proj belong to heads: nope_dim for the key, then v_dim for the value.
void add_key_and_value(TensorTable& table, const ModelConfig& c) {
    const LatentAttention& a = c.latent;
    const int64_t head_rows = a.nope_dim + a.v_dim;
    PackedSource source{.name = "self_attn.kv_b_proj.weight",
                        .shape = {c.n_head * head_rows, a.kv_rank},
                        .form = PackedSource::Form::Plain,
                        .first = 0,
                        .slice_stride = head_rows * a.kv_rank,
                        .row_stride = 1,
                        .column_stride = a.kv_rank};
    table.without_source("attn_k_b.weight", {c.n_head, a.kv_rank, a.nope_dim}, Role::Attention, true);
    table.packed(source);
    source.first = a.nope_dim * a.kv_rank;
    source.row_stride = a.kv_rank;
    source.column_stride = 1;
    table.without_source("attn_v_b.weight", {c.n_head, a.v_dim, a.kv_rank}, Role::Attention, true);
    table.packed(std::move(source));
}

/// Queries [n_tokens, n_head, kv_rank + rope_dim] in the space of the cache's rows.
Tensor queries(const BuildContext& c, const StepTensors& step, int64_t il, Tensor x) {
    const LatentAttention& a = c.config.latent;
    ggmlx::Graph& g = c.graph;
    if (a.q_rank > 0) {
        x = linear(c, weight_name(il, "attn_q_a"), x);
        x = norm(c, weight_name(il, "attn_q_a_norm.weight"), x);
    }
    Tensor q = linear(c, weight_name(il, a.q_rank > 0 ? "attn_q_b" : "attn_q"), x);
    q = ggmlx::reshape(g, q, {c.shape.n_tokens, c.config.n_head, a.nope_dim + a.rope_dim});
    q = ggmlx::rope(g, q, step.rope,
                    {.first = static_cast<int32_t>(a.nope_dim), .interleaved = a.interleaved, .inverse = false});
    const Tensor absorbed =
        ggmlx::head_matmul(g, c.tensors.get(weight_name(il, "attn_k_b.weight")), ggmlx::slice(g, q, 0, a.nope_dim));
    return ggmlx::concat(g, absorbed, ggmlx::slice(g, q, a.nope_dim, a.rope_dim));
}

/// The rows that this step adds to the cache: [n_tokens, 1, kv_rank + rope_dim].
Tensor cache_rows(const BuildContext& c, const StepTensors& step, int64_t il, Tensor x) {
    const LatentAttention& a = c.config.latent;
    ggmlx::Graph& g = c.graph;
    Tensor kv = linear(c, weight_name(il, "attn_kv_a_mqa"), x);
    kv = ggmlx::reshape(g, kv, {c.shape.n_tokens, 1, a.kv_rank + a.rope_dim});
    kv = ggmlx::rope(g, kv, step.rope,
                     {.first = static_cast<int32_t>(a.kv_rank), .interleaved = a.interleaved, .inverse = false});
    const Tensor latent = norm(c, weight_name(il, "attn_kv_a_norm.weight"), ggmlx::slice(g, kv, 0, a.kv_rank));
    return ggmlx::concat(g, latent, ggmlx::slice(g, kv, a.kv_rank, a.rope_dim));
}

}  // namespace

void add_latent_attention(TensorTable& table, const ModelConfig& c) {
    const LatentAttention& a = c.latent;
    const int64_t n_q = c.n_head * (a.nope_dim + a.rope_dim);
    if (a.q_rank > 0) {
        table.linear("attn_q_a", "self_attn.q_a_proj", a.q_rank, c.n_embd, Role::Attention, false);
        table.vector("attn_q_a_norm.weight", "self_attn.q_a_layernorm.weight", a.q_rank, Role::Norm);
        table.linear("attn_q_b", "self_attn.q_b_proj", n_q, a.q_rank, Role::Attention, false);
    } else {
        table.linear("attn_q", "self_attn.q_proj", n_q, c.n_embd, Role::Attention, false);
    }
    table.linear("attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa", a.kv_rank + a.rope_dim, c.n_embd, Role::Attention,
                 false);
    table.vector("attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight", a.kv_rank, Role::Norm);
    add_key_and_value(table, c);
    table.linear("attn_output", "self_attn.o_proj", c.n_embd, c.n_head * a.v_dim, Role::Attention, false);
}

Tensor latent_attention_block(const BuildContext& c, const StepTensors& step, int64_t il, Tensor x) {
    const LatentAttention& a = c.config.latent;
    ggmlx::Graph& g = c.graph;
    ggmlx::AttentionInputs in;
    in.q = queries(c, step, il, x);
    in.k_cache =
        ggmlx::cache_append(g, c.tensors.get(weight_name(il, "cache_k")), cache_rows(c, step, il, x), step.slots);
    in.v_cache = in.k_cache;
    in.block_table = step.block_table;
    in.sequence = c.sequence;
    in.positions = c.positions;
    ggmlx::AttentionParams params;
    params.scale = c.config.attention_scale;
    params.window = static_cast<int32_t>(c.config.window.at(static_cast<size_t>(il)));
    params.head_dim_v = a.kv_rank;
    Tensor y = ggmlx::attention(g, in, params);
    y = ggmlx::reshape(g, y, {c.shape.n_tokens, c.config.n_head, a.kv_rank});
    y = ggmlx::head_matmul(g, c.tensors.get(weight_name(il, "attn_v_b.weight")), y);
    y = ggmlx::reshape(g, y, {c.shape.n_tokens, c.config.n_head * a.v_dim});
    return linear(c, weight_name(il, "attn_output"), y);
}

}  // namespace llm
