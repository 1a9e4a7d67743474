#pragma once
// A two-layer mixture-of-experts network with attention, as a graph: what the tests of plan and executor split over
// devices.

#include <memory>
#include <string>

#include "ggmlx/graph/ops.h"

namespace ggmlx::test {

inline constexpr int64_t kEmbd = 32, kFf = 48, kExperts = 6, kUsed = 2, kHeads = 4, kHeadDim = 8, kVocab = 50,
                         kBlocks = 3, kBlockLen = 8;

inline void add_moe_tensors(TensorSet& set, DType type, int n_layers = 2) {
    set.add("token_embd.weight", type, {kVocab, kEmbd}, Role::Embedding);
    for (int il = 0; il < n_layers; ++il) {
        const std::string blk = "blk." + std::to_string(il) + ".";
        set.add(blk + "attn_norm.weight", DType::F32, {kEmbd}, Role::Norm);
        for (const char* p : {"attn_q", "attn_k", "attn_v", "attn_output"})
            set.add(blk + p + ".weight", type, {kEmbd, kEmbd}, Role::Attention);
        set.add(blk + "ffn_norm.weight", DType::F32, {kEmbd}, Role::Norm);
        set.add(blk + "ffn_router.weight", DType::F32, {kExperts, kEmbd}, Role::Router);
        set.add(blk + "ffn_gate_exps.weight", type, {kExperts, kFf, kEmbd}, Role::Expert);
        set.add(blk + "ffn_up_exps.weight", type, {kExperts, kFf, kEmbd}, Role::Expert);
        set.add(blk + "ffn_down_exps.weight", type, {kExperts, kEmbd, kFf}, Role::Expert);
        set.add(blk + "ffn_gate_shexp.weight", type, {kFf, kEmbd}, Role::SharedExpert);
        set.add(blk + "ffn_up_shexp.weight", type, {kFf, kEmbd}, Role::SharedExpert);
        set.add(blk + "ffn_down_shexp.weight", type, {kEmbd, kFf}, Role::SharedExpert);
        set.add(blk + "cache_k", DType::F32, {kBlocks, kHeads, kBlockLen, kHeadDim}, Role::Cache, TensorKind::State);
        set.add(blk + "cache_v", DType::F32, {kBlocks, kHeads, kBlockLen, kHeadDim}, Role::Cache, TensorKind::State);
    }
}

struct StepTensors {
    Tensor ids, positions, sequence, slots, block_table;
};

inline Tensor attention_block(Graph& g, const TensorSet& set, const std::string& blk, Tensor x, const StepTensors& in,
                              Tensor table) {
    const int64_t n = x.dim(0);
    const Tensor a = rms_norm(g, x, set.get(blk + "attn_norm.weight"), 1e-5f);
    auto heads = [&](const char* name) { return reshape(g, matmul(g, set.get(blk + name), a), {n, kHeads, kHeadDim}); };
    const Tensor q = rope(g, heads("attn_q.weight"), table, {});
    const Tensor k = rope(g, heads("attn_k.weight"), table, {});
    const Tensor k_cache = cache_append(g, set.get(blk + "cache_k"), k, in.slots);
    const Tensor v_cache = cache_append(g, set.get(blk + "cache_v"), heads("attn_v.weight"), in.slots);
    const Tensor y = attention(g,
                               {.q = q,
                                .k_cache = k_cache,
                                .v_cache = v_cache,
                                .block_table = in.block_table,
                                .sequence = in.sequence,
                                .positions = in.positions,
                                .sinks = {}},
                               {.scale = 0.35f, .window = 0});
    return add(g, x, matmul(g, set.get(blk + "attn_output.weight"), y));
}

inline Tensor moe_block(Graph& g, const TensorSet& set, const std::string& blk, Tensor x) {
    const Tensor a = rms_norm(g, x, set.get(blk + "ffn_norm.weight"), 1e-5f);
    const auto top = top_k(g, softmax(g, matmul(g, set.get(blk + "ffn_router.weight"), a)), kUsed);
    const ExpertWeights w{.gate = set.get(blk + "ffn_gate_exps.weight"),
                          .up = set.get(blk + "ffn_up_exps.weight"),
                          .down = set.get(blk + "ffn_down_exps.weight"),
                          .gate_bias = {},
                          .up_bias = {},
                          .down_bias = {}};
    const Tensor routed = experts(g, w, a, top.ids, divide_by_sum(g, top.weights));
    const Tensor gate = matmul(g, set.get(blk + "ffn_gate_shexp.weight"), a),
                 up = matmul(g, set.get(blk + "ffn_up_shexp.weight"), a);
    const Tensor shared = matmul(g, set.get(blk + "ffn_down_shexp.weight"), swiglu(g, gate, up));
    return add(g, x, add(g, routed, shared));
}

/// n_tokens of one sequence; logits are the output "logits" [n_tokens, kVocab] (the embedding is tied).
inline std::shared_ptr<Graph> moe_graph(const TensorSet& set, int64_t n_tokens, int n_layers = 2) {
    auto g = std::make_shared<Graph>();
    const StepTensors in{.ids = g->input("ids", DType::I32, {n_tokens}),
                         .positions = g->input("positions", DType::I32, {n_tokens}),
                         .sequence = g->input("sequence", DType::I32, {n_tokens}),
                         .slots = g->input("slots", DType::I32, {n_tokens}),
                         .block_table = g->input("block_table", DType::I32, {1, kBlocks})};
    const Tensor table = rope_table(*g, in.positions, {.inv_freq = {1.0f, 0.3f, 0.1f, 0.03f}, .magnitude = 1.0f});
    Tensor x = get_rows(*g, set.get("token_embd.weight"), in.ids);
    for (int il = 0; il < n_layers; ++il) {
        const std::string scope = "blk." + std::to_string(il);
        g->set_scope(scope);
        x = attention_block(*g, set, scope + ".", x, in, table);
        x = moe_block(*g, set, scope + ".", x);
    }
    g->set_scope("");
    g->output(matmul(*g, set.get("token_embd.weight"), x), "logits");
    return g;
}

}  // namespace ggmlx::test
