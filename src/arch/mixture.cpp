#include "src/arch/mixture.h"

#include <fmt/core.h>

#include "ggmlx/graph/ops.h"
#include "src/arch/blocks.h"

namespace llm {
namespace {

using ggmlx::Role;
using ggmlx::Tensor;

/// The forms of the stacked tensors of transformers 5: gate above up in [n_expert, 2 n_ff, n_embd], and down.
PackedSource stacked_gate_up(const Mixture& m, int64_t n_embd, int64_t first_row) {
    return {.name = "mlp.experts.gate_up_proj",
            .shape = {m.n_expert, 2 * m.n_ff, n_embd},
            .form = PackedSource::Form::Plain,
            .first = first_row * n_embd,
            .slice_stride = 2 * m.n_ff * n_embd,
            .row_stride = n_embd,
            .column_stride = 1};
}

PackedSource stacked_down(const Mixture& m, int64_t n_embd) {
    return {.name = "mlp.experts.down_proj",
            .shape = {m.n_expert, n_embd, m.n_ff},
            .form = PackedSource::Form::Plain,
            .first = 0,
            .slice_stride = n_embd * m.n_ff,
            .row_stride = m.n_ff,
            .column_stride = 1};
}

std::vector<std::string> expert_sources(const MixtureNames& names, std::string_view part, int64_t n_expert) {
    std::vector<std::string> sources;
    for (int64_t e = 0; e < n_expert; ++e)
        sources.push_back(fmt::format("{}.experts.{}.{}.weight", names.block, e, part));
    return sources;
}

void add_experts(TensorTable& table, const ModelConfig& c, const MixtureNames& names) {
    const Mixture& m = c.mixture;
    table.stack("ffn_gate_exps.weight", expert_sources(names, names.gate, m.n_expert), m.n_ff, c.n_embd, Role::Expert);
    table.packed(stacked_gate_up(m, c.n_embd, 0));
    table.stack("ffn_up_exps.weight", expert_sources(names, names.up, m.n_expert), m.n_ff, c.n_embd, Role::Expert);
    table.packed(stacked_gate_up(m, c.n_embd, m.n_ff));
    table.stack("ffn_down_exps.weight", expert_sources(names, names.down, m.n_expert), c.n_embd, m.n_ff, Role::Expert);
    table.packed(stacked_down(m, c.n_embd));
}

/// gpt-oss in floats is [n_expert, n_in, n_out], its packed MXFP4 is [n_expert, n_out, n_in]. In both, gate and up
/// alternate over the 2 n_ff outputs; parity 0 is gate.
void add_interleaved(TensorTable& table, std::string_view name, const Mixture& m, int64_t n_embd, int64_t parity) {
    table.without_source(fmt::format("{}.weight", name), {m.n_expert, m.n_ff, n_embd}, Role::Expert, true);
    table.packed({.name = "mlp.experts.gate_up_proj",
                  .shape = {m.n_expert, n_embd, 2 * m.n_ff},
                  .form = PackedSource::Form::Plain,
                  .first = parity,
                  .slice_stride = n_embd * 2 * m.n_ff,
                  .row_stride = 2,
                  .column_stride = 2 * m.n_ff});
    table.packed({.name = "mlp.experts.gate_up_proj",
                  .shape = {m.n_expert, 2 * m.n_ff, n_embd},
                  .form = PackedSource::Form::MXFP4,
                  .first = parity * n_embd,
                  .slice_stride = 2 * m.n_ff * n_embd,
                  .row_stride = 2 * n_embd,
                  .column_stride = 1});
    table.without_source(fmt::format("{}.bias", name), {m.n_expert, m.n_ff}, Role::Expert, false);
    table.packed({.name = "mlp.experts.gate_up_proj_bias",
                  .shape = {m.n_expert, 2 * m.n_ff},
                  .form = PackedSource::Form::Plain,
                  .first = parity,
                  .slice_stride = 0,
                  .row_stride = 2 * m.n_ff,
                  .column_stride = 2});
}

void add_gpt_oss_experts(TensorTable& table, const ModelConfig& c) {
    const Mixture& m = c.mixture;
    add_interleaved(table, "ffn_gate_exps", m, c.n_embd, 0);
    add_interleaved(table, "ffn_up_exps", m, c.n_embd, 1);
    table.without_source("ffn_down_exps.weight", {m.n_expert, c.n_embd, m.n_ff}, Role::Expert, true);
    table.packed({.name = "mlp.experts.down_proj",
                  .shape = {m.n_expert, m.n_ff, c.n_embd},
                  .form = PackedSource::Form::Plain,
                  .first = 0,
                  .slice_stride = m.n_ff * c.n_embd,
                  .row_stride = 1,
                  .column_stride = c.n_embd});
    table.packed({.name = "mlp.experts.down_proj",
                  .shape = {m.n_expert, c.n_embd, m.n_ff},
                  .form = PackedSource::Form::MXFP4,
                  .first = 0,
                  .slice_stride = c.n_embd * m.n_ff,
                  .row_stride = m.n_ff,
                  .column_stride = 1});
    table.without_source("ffn_down_exps.bias", {m.n_expert, c.n_embd}, Role::Expert, false);
    table.packed({.name = "mlp.experts.down_proj_bias",
                  .shape = {m.n_expert, c.n_embd},
                  .form = PackedSource::Form::Plain,
                  .first = 0,
                  .slice_stride = 0,
                  .row_stride = c.n_embd,
                  .column_stride = 1});
}

void add_shared_expert(TensorTable& table, const ModelConfig& c, const MixtureNames& names) {
    const Mixture& m = c.mixture;
    const auto source = [&](std::string_view part) {
        return fmt::format("{}.{}.{}.weight", names.block, names.shared, part);
    };
    table.matrix("ffn_gate_shexp.weight", source("gate_proj"), m.n_ff_shared, c.n_embd, Role::SharedExpert);
    table.matrix("ffn_up_shexp.weight", source("up_proj"), m.n_ff_shared, c.n_embd, Role::SharedExpert);
    table.matrix("ffn_down_shexp.weight", source("down_proj"), c.n_embd, m.n_ff_shared, Role::SharedExpert);
    if (m.shared_gate)
        table.exact_matrix("ffn_gate_inp_shexp.weight", fmt::format("{}.{}_gate.weight", names.block, names.shared), 1,
                           c.n_embd, Role::SharedExpert);
}

/// The name that transformers 5 gives to what is called otherwise in published checkpoints.
void also_named(TensorTable& table, std::string name, int64_t n_out, int64_t n_in) {
    table.packed({.name = std::move(name),
                  .shape = n_out > 1 ? std::vector{n_out, n_in} : std::vector{n_in},
                  .form = PackedSource::Form::Plain,
                  .first = 0,
                  .slice_stride = 0,
                  .row_stride = n_in,
                  .column_stride = 1});
}

void add_router(TensorTable& table, const ModelConfig& c, const MixtureNames& names) {
    const Mixture& m = c.mixture;
    const std::string router = fmt::format("{}.{}", names.block, names.is_gpt_oss ? "router" : "gate");
    const bool renamed = names.block != "mlp";
    table.exact_matrix("ffn_gate_inp.weight", router + ".weight", m.n_expert, c.n_embd, Role::Router);
    if (renamed) also_named(table, "mlp.gate.weight", m.n_expert, c.n_embd);
    if (m.router_bias) table.vector("ffn_gate_inp.bias", router + ".bias", m.n_expert, Role::Router);
    if (!m.selection_bias) return;
    table.vector("exp_probs_b.bias", fmt::format("{}.{}", names.block, names.selection_bias), m.n_expert, Role::Router);
    if (renamed) also_named(table, fmt::format("mlp.{}", names.selection_bias), 1, m.n_expert);
}

Tensor shared_expert(const BuildContext& c, int64_t il, Tensor x) {
    const auto name = [il](std::string_view part) { return fmt::format("blk.{}.{}", il, part); };
    const Tensor gate = linear(c, name("ffn_gate_shexp"), x), up = linear(c, name("ffn_up_shexp"), x);
    const Tensor y = linear(c, name("ffn_down_shexp"), ggmlx::swiglu(c.graph, gate, up));
    if (!c.config.mixture.shared_gate) return y;
    return ggmlx::sigmoid_gate(c.graph, y, linear(c, name("ffn_gate_inp_shexp"), x));
}

}  // namespace

void add_mixture(TensorTable& table, const ModelConfig& config, const MixtureNames& names) {
    add_router(table, config, names);
    if (names.is_gpt_oss)
        add_gpt_oss_experts(table, config);
    else
        add_experts(table, config, names);
    if (config.mixture.n_ff_shared > 0) add_shared_expert(table, config, names);
}

Tensor mixture_block(const BuildContext& c, int64_t il, Tensor x) {
    const Mixture& m = c.config.mixture;
    const auto name = [il](std::string_view part) { return fmt::format("blk.{}.{}", il, part); };
    const auto weight = [&](std::string_view part) { return c.tensors.get(name(part)); };
    const auto bias = [&](std::string_view part) { return m.expert_bias ? weight(part) : Tensor(); };

    const Tensor logits = named(c, linear(c, name("ffn_gate_inp"), x), name("router_logits"));
    const Tensor selection_bias = m.selection_bias ? weight("exp_probs_b.bias") : Tensor();
    const ggmlx::Routing chosen = ggmlx::router(c.graph, logits, c.sequence, selection_bias, m.router);
    named(c, chosen.ids, name("router_ids"));
    named(c, chosen.weights, name("router_weights"));

    const ggmlx::ExpertWeights experts{.gate = weight("ffn_gate_exps.weight"),
                                       .up = weight("ffn_up_exps.weight"),
                                       .down = weight("ffn_down_exps.weight"),
                                       .gate_bias = bias("ffn_gate_exps.bias"),
                                       .up_bias = bias("ffn_up_exps.bias"),
                                       .down_bias = bias("ffn_down_exps.bias")};
    const Tensor routed =
        named(c, ggmlx::experts(c.graph, experts, x, chosen.ids, chosen.weights, m.activation), name("ffn_moe_out"));
    if (m.n_ff_shared == 0) return routed;
    // Built before the routed rows are added up, so that it runs beside experts of other devices.
    const Tensor shared = named(c, shared_expert(c, il, x), name("ffn_shared_out"));
    return ggmlx::add(c.graph, routed, shared);
}

}  // namespace llm
