#include "src/arch/blocks.h"

#include <fmt/core.h>

#include "ggmlx/graph/ops.h"
#include "src/arch/latent_attention.h"
#include "src/arch/mixture.h"

namespace llm {

using ggmlx::Graph;
using ggmlx::Tensor;

namespace {

std::string layer_name(int64_t il, std::string_view part) { return fmt::format("blk.{}.{}", il, part); }

Tensor named(const BuildContext& c, Tensor value, int64_t il, std::string_view part) {
    return named(c, value, layer_name(il, part));
}

/// Projects x to heads: [n_tokens, n_head, head_dim], normalised and limited if the model asks for it.
Tensor heads(const BuildContext& c, const std::string& name, Tensor x, int64_t n_head) {
    using Norm = ModelConfig::QkNorm;
    const bool has_norm = c.tensors.find(name + "_norm.weight").has_value();
    Tensor y = linear(c, name, x);
    if (has_norm && c.config.qk_norm == Norm::Whole) y = norm(c, name + "_norm.weight", y);
    if (c.config.clip_qkv > 0) y = ggmlx::clamp(c.graph, y, c.config.clip_qkv);
    y = ggmlx::reshape(c.graph, y, {c.shape.n_tokens, n_head, c.config.head_dim});
    return has_norm && c.config.qk_norm == Norm::PerHead ? norm(c, name + "_norm.weight", y) : y;
}

/// One layer: attention and feed-forward, each added to the stream.
Tensor layer(const BuildContext& c, const StepTensors& step, int64_t il, Tensor x) {
    Graph& g = c.graph;
    g.set_scope(fmt::format("blk.{}", il));
    Tensor y = named(c, norm(c, layer_name(il, "attn_norm.weight"), x), il, "attn_norm_out");
    y = c.config.latent ? latent_attention_block(c, step, il, y) : attention_block(c, step, il, y);
    y = named(c, y, il, "attn_out");
    x = named(c, ggmlx::add(g, x, y), il, "ffn_in");
    y = named(c, norm(c, layer_name(il, "ffn_norm.weight"), x), il, "ffn_norm_out");
    y = named(c, c.config.mixture.in_layer(il) ? mixture_block(c, il, y) : ffn_block(c, il, y), il, "ffn_out");
    return named(c, ggmlx::add(g, x, y), il, "out");
}

}  // namespace

Tensor norm(const BuildContext& c, const std::string& weight, Tensor x) {
    return ggmlx::rms_norm(c.graph, x, c.tensors.get(weight), c.config.rms_norm_eps);
}

Tensor named(const BuildContext& c, Tensor value, std::string name) {
    c.graph.set_name(value, std::move(name));
    return value;
}

StepTensors step_tensors(const BuildContext& c) {
    const RopeFrequencies f = rope_frequencies(c.config.rope_theta, c.config.n_rot, c.config.rope_scaling);
    return {ggmlx::rope_table(c.graph, c.positions, {f.inv_freq, f.magnitude}), c.graph.find("kv.slots"),
            c.graph.find("kv.block_table")};
}

Tensor linear(const BuildContext& c, std::string_view name, Tensor x) {
    const Tensor y = ggmlx::matmul(c.graph, c.tensors.get(fmt::format("{}.weight", name)), x);
    const auto bias = c.tensors.find(fmt::format("{}.bias", name));
    return bias ? ggmlx::add(c.graph, y, *bias) : y;
}

Tensor attention_block(const BuildContext& c, const StepTensors& step, int64_t il, Tensor x) {
    Graph& g = c.graph;
    const ModelConfig& config = c.config;
    const Tensor q = ggmlx::rope(g, heads(c, layer_name(il, "attn_q"), x, config.n_head), step.rope, {});
    const Tensor k = ggmlx::rope(g, heads(c, layer_name(il, "attn_k"), x, config.n_head_kv), step.rope, {});
    const Tensor v = heads(c, layer_name(il, "attn_v"), x, config.n_head_kv);

    ggmlx::AttentionInputs in;
    in.q = q;
    in.k_cache = ggmlx::cache_append(g, c.tensors.get(layer_name(il, "cache_k")), k, step.slots);
    in.v_cache = ggmlx::cache_append(g, c.tensors.get(layer_name(il, "cache_v")), v, step.slots);
    in.block_table = step.block_table;
    in.sequence = c.sequence;
    in.positions = c.positions;
    if (config.attention_sinks) in.sinks = c.tensors.get(layer_name(il, "attn_sinks.weight"));
    ggmlx::AttentionParams params;
    params.scale = config.attention_scale;
    params.window = static_cast<int32_t>(config.window.at(static_cast<size_t>(il)));
    return linear(c, layer_name(il, "attn_output"), ggmlx::attention(g, in, params));
}

Tensor ffn_block(const BuildContext& c, int64_t il, Tensor x) {
    const Tensor gate = linear(c, layer_name(il, "ffn_gate"), x);
    const Tensor up = linear(c, layer_name(il, "ffn_up"), x);
    return linear(c, layer_name(il, "ffn_down"), ggmlx::swiglu(c.graph, gate, up));
}

Tensor output_head(const BuildContext& c, Tensor x) {
    Graph& g = c.graph;
    x = ggmlx::get_rows(g, x, c.outputs);
    x = named(c, norm(c, "output_norm.weight", x), "output_norm_out");
    const auto head = c.tensors.find("output.weight");
    return named(c, ggmlx::matmul(g, head ? *head : c.tensors.get("token_embd.weight"), x), "logits");
}

Tensor build_decoder(const BuildContext& c) {
    const StepTensors step = step_tensors(c);
    Tensor x = named(c, ggmlx::get_rows(c.graph, c.tensors.get("token_embd.weight"), c.ids), "embd");
    for (int64_t il = 0; il < c.config.n_layer; ++il) x = layer(c, step, il, x);
    c.graph.set_scope("");
    return output_head(c, x);
}

}  // namespace llm
