// Shape rules and error messages of the builders in ops.h and expert_parts.h.

#include "ggmlx/graph/ops.h"

#include <gtest/gtest.h>

#include <functional>

#include "ggmlx/graph/expert_parts.h"

namespace ggmlx {
namespace {

/// The message of the invalid_argument that f throws; "" if it throws none.
std::string refusal(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::InvalidArgument);
        return e.what();
    }
    return "";
}

class Ops : public testing::Test {
  protected:
    TensorSet set;
    Graph g;

    Tensor f32(std::string name, Shape shape) { return g.input(std::move(name), DType::F32, shape); }
    Tensor i32(std::string name, Shape shape) { return g.input(std::move(name), DType::I32, shape); }
    Tensor weight(std::string name, Shape shape, DType dtype = DType::F32) {
        return set.add(std::move(name), dtype, shape, Role::Dense);
    }
    Tensor state(std::string name, Shape shape, DType dtype = DType::F16) {
        return set.add(std::move(name), dtype, shape, Role::Cache, TensorKind::State);
    }
};

TEST_F(Ops, MatmulGivesOneRowPerTokenForEveryWeightType) {
    Tensor x = f32("x", {5, 256});
    for (DType t : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::Q4_K,
                    DType::Q6_K, DType::MXFP4, DType::MXFP8}) {
        Tensor y = matmul(g, weight("w_" + std::string(name(t)), {33, 256}, t), x);
        EXPECT_EQ(y.shape(), Shape({5, 33}));
        EXPECT_EQ(y.dtype(), DType::F32);
    }
    const Node& node = g.nodes().back();
    EXPECT_EQ(node.inputs[0].name(), "w_mxfp8");
    EXPECT_EQ(node.inputs[1], x);
}

TEST_F(Ops, MatmulNamesWhatDoesNotFit) {
    Tensor w = weight("blk.3.attn_q", {4096, 2048}, DType::Q4_K);
    EXPECT_EQ(refusal([&] {
                  matmul(g, w, f32("x", {1, 4096}));
              }),
              "matmul: weight blk.3.attn_q is [4096, 2048] but x has 4096 columns");
    EXPECT_EQ(refusal([&] { matmul(g, Tensor(), f32("x1", {1, 8})); }), "matmul: weight is missing");
    EXPECT_EQ(refusal([&] { matmul(g, w, i32("x2", {1, 2048})); }), "matmul: x x2 is i32 but must be f32");
    EXPECT_EQ(refusal([&] { matmul(g, w, f32("x3", {2048})); }), "matmul: x x3 is [2048] but must be [n_tokens, n_in]");
    EXPECT_EQ(refusal([&] {
                  matmul(g, weight("stack", {2, 3, 4}), f32("x4", {1, 4}));
              }),
              "matmul: weight stack is [2, 3, 4] but must be [n_out, n_in]");
    EXPECT_EQ(refusal([&] {
                  matmul(g, weight("odd", {16, 100}, DType::Q6_K), f32("x5", {1, 100}));
              }),
              "matmul: weight odd is q6_k but its rows of 100 values are no multiple of 256");
    EXPECT_EQ(refusal([&] {
                  matmul(g, weight("cache", {16, 32}, DType::F8_E4M3), f32("x6", {1, 32}));
              }),
              "matmul: weight cache is f8_e4m3, which is no type of weights");
    EXPECT_EQ(refusal([&] { matmul(g, weight("odd8", {16, 100}, DType::Q8_0), f32("x7", {1, 100})); }), "");
    EXPECT_EQ(g.nodes().size(), 1u) << "a refused node is not added";
}

TEST_F(Ops, GetRowsReadsAnyWeight) {
    Tensor ids = i32("ids", {7});
    EXPECT_EQ(get_rows(g, weight("token_embd", {10, 100}, DType::MXFP4), ids).shape(), Shape({7, 100}));
    EXPECT_EQ(get_rows(g, f32("values", {3, 8}), ids).shape(), Shape({7, 8}));
    EXPECT_EQ(refusal([&] {
                  get_rows(g, i32("table", {3, 8}), ids);
              }),
              "get_rows: table table is i32, which is no type of weights");
    EXPECT_EQ(refusal([&] {
                  get_rows(g, f32("v2", {3, 8}), f32("f", {7}));
              }),
              "get_rows: ids f is f32 but must be i32");
}

TEST_F(Ops, NormsKeepTheShape) {
    Tensor x = f32("x", {2, 3, 8});
    EXPECT_EQ(rms_norm(g, x, weight("norm", {8}), 1e-5f).shape(), x.shape());
    EXPECT_EQ(g.nodes().back().inputs.size(), 2u);
    EXPECT_EQ(rms_norm(g, x, {}, 1e-5f).shape(), x.shape());
    EXPECT_EQ(g.nodes().back().inputs.size(), 1u);
    EXPECT_EQ(softmax(g, x).shape(), x.shape());
    EXPECT_EQ(refusal([&] { rms_norm(g, x, weight("norm3", {3}), 1e-5f); }),
              "rms_norm: weight norm3 is [3] but must be [8]");
    EXPECT_EQ(refusal([&] { rms_norm(g, x, weight("norm16", {8}, DType::BF16), 1e-5f); }),
              "rms_norm: weight norm16 is bf16 but must be f32");
    EXPECT_NE(refusal([&] { rms_norm(g, x, {}, -1.0f); }), "");
    EXPECT_EQ(refusal([&] { divide_by_sum(g, x); }), "divide_by_sum: x x is [2, 3, 8] but must be [n_tokens, n]");
}

TEST_F(Ops, ElementwiseTakesTheSameShapeOrOneRow) {
    Tensor a = f32("a", {2, 3, 4});
    EXPECT_EQ(add(g, a, f32("b", {2, 3, 4})).shape(), a.shape());
    EXPECT_EQ(mul(g, a, f32("row", {4})).shape(), a.shape());
    EXPECT_EQ(scale(g, a, 2.0f).shape(), a.shape());
    EXPECT_EQ(swiglu(g, a, f32("u", {2, 3, 4})).shape(), a.shape());
    EXPECT_EQ(refusal([&] {
                  add(g, a, f32("c", {3, 4}));
              }),
              "add: a a is [2, 3, 4] but b c is [3, 4]; b must have the shape of a or of its last dim");
    EXPECT_EQ(refusal([&] { mul(g, a, i32("d", {4})); }), "mul: b d is i32 but must be f32");
    EXPECT_EQ(refusal([&] { swiglu(g, a, f32("u2", {4})); }), "swiglu: up u2 is [4] but must be [2, 3, 4]");
    EXPECT_EQ(refusal([&] { scale(g, i32("e", {4}), 2.0f); }), "scale: x e is i32 but must be f32");
}

TEST_F(Ops, TopKGivesWeightsAndIds) {
    Tensor x = f32("x", {5, 8});
    TopK top = top_k(g, x, 8);
    EXPECT_EQ(top.weights.shape(), Shape({5, 8}));
    EXPECT_EQ(top.weights.dtype(), DType::F32);
    EXPECT_EQ(top.ids.shape(), Shape({5, 8}));
    EXPECT_EQ(top.ids.dtype(), DType::I32);
    top_k(g, x, 2, i32("rows", {5}));
    EXPECT_EQ(g.nodes().back().inputs.size(), 2u);
    EXPECT_EQ(refusal([&] { top_k(g, x, 9); }), "top_k: k is 9 but x x has 8 columns");
    EXPECT_EQ(refusal([&] { top_k(g, x, 0); }), "top_k: k is 0 but x x has 8 columns");
    EXPECT_EQ(refusal([&] { top_k(g, x, 2, i32("rows4", {4})); }), "top_k: rows rows4 is [4] but must be [5]");
}

TEST_F(Ops, RouterGivesWeightsAndIds) {
    Tensor logits = f32("logits", {5, 8}), rows = i32("rows", {5});
    const Routing r = router(g, logits, rows, {}, {.k = 3});
    EXPECT_EQ(r.weights.shape(), Shape({5, 3}));
    EXPECT_EQ(r.ids.dtype(), DType::I32);
    EXPECT_EQ(g.nodes().back().inputs.size(), 2u);
    router(g, logits, rows, weight("bias", {8}), {.k = 4, .n_groups = 4, .groups_used = 2, .group_best = 2});
    EXPECT_EQ(g.nodes().back().inputs.size(), 3u);
    const auto refused = [&](RouterParams p) { return refusal([&] { router(g, logits, rows, {}, p); }); };
    EXPECT_EQ(refused({.k = 9}), "router: k is 9 but there are 8 experts");
    EXPECT_EQ(refused({.k = 1, .n_groups = 3}), "router: 8 experts do not form 3 groups of equal size");
    EXPECT_EQ(refused({.k = 5, .n_groups = 4, .groups_used = 2}),
              "router: 2 of 4 groups of 2 experts do not give 5 experts");
    EXPECT_EQ(refused({.k = 1, .n_groups = 4, .groups_used = 1, .group_best = 3}),
              "router: the 3 best of a group are asked for but groups have 2 experts");
    EXPECT_EQ(refusal([&] { router(g, logits, rows, weight("bias7", {7}), {.k = 1}); }),
              "router: bias bias7 is [7] but must be [8]");
}

TEST_F(Ops, HeadMatmulTakesOneMatrixPerHead) {
    EXPECT_EQ(head_matmul(g, weight("heads", {4, 20, 16}), f32("x", {5, 4, 16})).shape(), Shape({5, 4, 20}));
    EXPECT_EQ(refusal([&] {
                  head_matmul(g, weight("flat", {20, 16}), f32("x1", {5, 4, 16}));
              }),
              "head_matmul: weight flat is [20, 16] but must be [n_head, n_out, n_in]");
    EXPECT_EQ(refusal([&] {
                  head_matmul(g, weight("heads3", {3, 20, 16}), f32("x2", {5, 4, 16}));
              }),
              "head_matmul: x x2 is [5, 4, 16] but must be [5, 3, 16]");
}

TEST_F(Ops, RowsAreCutJoinedLimitedAndGated) {
    Tensor x = f32("x", {5, 2, 8});
    EXPECT_EQ(slice(g, x, 2, 6).shape(), Shape({5, 2, 6}));
    EXPECT_EQ(concat(g, x, f32("y", {5, 2, 3})).shape(), Shape({5, 2, 11}));
    EXPECT_EQ(clamp(g, x, 2.0f).shape(), x.shape());
    EXPECT_EQ(sigmoid_gate(g, f32("z", {5, 8}), f32("gate", {5, 1})).shape(), Shape({5, 8}));
    EXPECT_EQ(refusal([&] { slice(g, x, 3, 6); }), "slice: values 3 to 9 of a row are wanted but x x has rows of 8");
    EXPECT_EQ(refusal([&] { concat(g, x, f32("y2", {5, 3})); }), "concat: b y2 is [5, 3] but must be [5, 2, 3]");
    EXPECT_EQ(refusal([&] { clamp(g, x, 0.0f); }), "clamp: limit is 0 but must be positive");
    EXPECT_EQ(refusal([&] {
                  sigmoid_gate(g, f32("z2", {5, 8}), f32("gate2", {5, 8}));
              }),
              "sigmoid_gate: gate gate2 is [5, 8] but must be [5, 1]");
}

TEST_F(Ops, RopeRotatesValuesInsideAHead) {
    Tensor table = rope_table(g, i32("positions", {5}), {.inv_freq = {1.0f, 0.5f, 0.25f}});
    EXPECT_EQ(table.shape(), Shape({5, 3, 2}));
    Tensor x = f32("x", {5, 2, 8});
    EXPECT_EQ(rope(g, x, table, {.first = 2}).shape(), x.shape());
    EXPECT_EQ(refusal([&] { rope(g, x, table, {.first = 3}); }),
              "rope: values 3 to 9 of a head are to be rotated but x x has heads of 8");
    EXPECT_EQ(refusal([&] {
                  rope(g, f32("x4", {4, 2, 8}), table, {});
              }),
              "rope: table rope_table is [5, 3, 2] but must be [4, 3, 2]");
    EXPECT_NE(refusal([&] { rope_table(g, i32("p", {5}), {}); }), "");
}

TEST_F(Ops, CacheAppendGivesTheStateAsItIsAfterwards) {
    Tensor cache = state("k_cache", {6, 2, 128, 64});
    Tensor after = cache_append(g, cache, f32("x", {3, 2, 64}), i32("slots", {3}));
    EXPECT_EQ(after.storage(), cache);
    EXPECT_EQ(after.shape(), cache.shape());
    EXPECT_EQ(after.dtype(), DType::F16);
    EXPECT_EQ(after.info().producer, 0);
    EXPECT_EQ(after.kind(), TensorKind::Value) << "so that its readers come after its writer";
    ASSERT_EQ(g.nodes()[0].outputs.size(), 1u);
    EXPECT_EQ(g.nodes()[0].outputs[0], after);
    Tensor twice = cache_append(g, after, f32("x2", {1, 2, 64}), i32("slots1", {1}));
    EXPECT_EQ(twice.storage(), cache);
    EXPECT_EQ(refusal([&] {
                  cache_append(g, cache, f32("x3", {3, 2, 32}), i32("s3", {3}));
              }),
              "cache_append: x x3 is [3, 2, 32] but cache k_cache has 2 heads of 64");
    EXPECT_EQ(refusal([&] {
                  cache_append(g, f32("y", {6, 2, 128, 64}), f32("x4", {3, 2, 64}), i32("s4", {3}));
              }),
              "cache_append: cache y must be a state, which outlives the graph");
    Tensor q4 = state("q4", {6, 2, 128, 64}, DType::Q4_0);
    EXPECT_EQ(refusal([&] {
                  cache_append(g, q4, f32("x5", {3, 2, 64}), i32("s5", {3}));
              }),
              "cache_append: cache q4 is q4_0 but must be one of f32, f16, bf16, f8_e4m3, q8_0");
    Tensor q8 = state("q8", {6, 2, 24, 64}, DType::Q8_0);
    EXPECT_EQ(refusal([&] {
                  cache_append(g, q8, f32("x7", {3, 2, 64}), i32("s7", {3}));
              }),
              "cache_append: cache q8 is q8_0 with blocks of 24 rows, which must be a multiple of 16");
    EXPECT_EQ(refusal([&] {
                  cache_append(g, cache, f32("x6", {3, 2, 64}), i32("s6", {2}));
              }),
              "cache_append: slots s6 is [2] but must be [3]");
}

TEST_F(Ops, AttentionChecksHeadsBlocksAndTables) {
    AttentionInputs in{.q = f32("q", {5, 6, 64}),
                       .k_cache = state("k", {9, 2, 16, 64}),
                       .v_cache = state("v", {9, 2, 16, 32}, DType::BF16),
                       .block_table = i32("blocks", {3, 4}),
                       .sequence = i32("sequence", {5}),
                       .positions = i32("positions", {5}),
                       .sinks = {}};
    EXPECT_EQ(attention(g, in, {.scale = 0.125f}).shape(), Shape({5, 6 * 32}));
    EXPECT_EQ(g.nodes().back().inputs.size(), 6u);
    AttentionInputs with_sinks = in;
    with_sinks.sinks = weight("sinks", {6});
    EXPECT_EQ(attention(g, with_sinks, {}).shape(), Shape({5, 6 * 32}));
    EXPECT_EQ(g.nodes().back().inputs.size(), 7u);

    const auto refused = [&](auto change) {
        AttentionInputs bad = with_sinks;
        AttentionParams params;
        change(bad, params);
        return refusal([&] { attention(g, bad, params); });
    };
    EXPECT_EQ(refused([&](auto& bad, auto&) {
                  bad.q = f32("q5", {5, 5, 64});
              }),
              "attention: q q5 has 5 heads, no multiple of the 2 of k_cache k");
    EXPECT_EQ(refused([&](auto& bad, auto&) {
                  bad.q = f32("q32", {5, 6, 32});
              }),
              "attention: k_cache k is [9, 2, 16, 64] but must be [9, 2, 16, 32]");
    EXPECT_EQ(refused([&](auto& bad, auto&) {
                  bad.v_cache = state("v8", {8, 2, 16, 32});
              }),
              "attention: v_cache v8 is [8, 2, 16, 32] but must be [9, 2, 16, 32]");
    EXPECT_EQ(refused([&](auto& bad, auto&) { bad.sequence = i32("seq4", {4}); }),
              "attention: sequence seq4 is [4] but must be [5]");
    EXPECT_EQ(refused([&](auto& bad, auto&) { bad.sinks = weight("sinks2", {2}); }),
              "attention: sinks sinks2 is [2] but must be [6]");
    EXPECT_EQ(refused([&](auto& bad, auto&) { bad.block_table = {}; }), "attention: block_table is missing");
    EXPECT_NE(refused([](auto&, auto& params) { params.window = -1; }), "");
}

TEST_F(Ops, ReshapeKeepsTheNumberOfElements) {
    Tensor x = f32("x", {4, 6});
    EXPECT_EQ(reshape(g, x, {4, 2, 3}).shape(), Shape({4, 2, 3}));
    EXPECT_EQ(refusal([&] { reshape(g, x, {4, 5}); }), "reshape: x is [4, 6] and cannot be seen as [4, 5]");
    EXPECT_NE(refusal([&] { reshape(g, weight("w", {32, 32}, DType::Q8_0), {1024}); }), "");
}

class ExpertOps : public Ops {
  protected:
    ExpertWeights w{.gate = weight("gate", {4, 96, 64}, DType::Q4_0),
                    .up = weight("up", {4, 96, 64}, DType::Q8_0),
                    .down = weight("down", {4, 64, 96}, DType::MXFP4),
                    .gate_bias = {},
                    .up_bias = {},
                    .down_bias = {}};
    Tensor x = f32("x", {5, 64});
    Tensor ids = i32("ids", {5, 2});
    Tensor weights = f32("weights", {5, 2});
    Tensor slots = i32("slots", {4});

    ExpertWeights with_bias() {
        ExpertWeights b = w;
        b.gate_bias = weight("gate_bias", {4, 96});
        b.up_bias = weight("up_bias", {4, 96});
        b.down_bias = weight("down_bias", {4, 64});
        return b;
    }
};

TEST_F(ExpertOps, ExpertsIsOneNode) {
    EXPECT_EQ(experts(g, w, x, ids, weights).shape(), Shape({5, 64}));
    EXPECT_EQ(g.nodes().back().inputs.size(), 6u);
    EXPECT_FALSE(std::get<ExpertsParams>(g.nodes().back().params).has_bias);
    experts(g, with_bias(), x, ids, weights, {.alpha = 1.7f});
    EXPECT_EQ(g.nodes().back().inputs.size(), 9u);
    EXPECT_TRUE(std::get<ExpertsParams>(g.nodes().back().params).has_bias);
    EXPECT_EQ(std::get<ExpertsParams>(g.nodes().back().params).activation.alpha, 1.7f);
}

TEST_F(ExpertOps, ExpertsNamesWhatDoesNotFit) {
    const auto refused = [&](auto change) {
        ExpertWeights bad = w;
        change(bad);
        return refusal([&] { experts(g, bad, x, ids, weights); });
    };
    EXPECT_EQ(refused([&](auto& b) {
                  b.up = weight("up3", {3, 96, 64});
              }),
              "experts: up up3 is [3, 96, 64] but must be [4, 96, 64]");
    EXPECT_EQ(refused([&](auto& b) {
                  b.gate = weight("gate32", {4, 96, 32});
              }),
              "experts: gate gate32 is [4, 96, 32] but must be [4, 96, 64]");
    EXPECT_EQ(refused([&](auto& b) {
                  b.down = weight("turned", {4, 96, 64});
              }),
              "experts: down turned is [4, 96, 64] but must be [4, 64, 96]");
    EXPECT_EQ(refused([&](auto& b) { b.up_bias = weight("lone", {4, 96}); }), "experts: gate_bias is missing");
    EXPECT_EQ(refused([&](auto& b) {
                  b.down = weight("down_k", {4, 64, 96}, DType::Q4_K);
              }),
              "experts: down down_k is q4_k but its rows of 96 values are no multiple of 256");
    EXPECT_EQ(refusal([&] {
                  experts(g, w, x, i32("ids4", {4, 2}), weights);
              }),
              "experts: ids ids4 has 4 rows but x x has 5");
    EXPECT_EQ(refusal([&] {
                  experts(g, w, x, ids, f32("w3", {5, 3}));
              }),
              "experts: weights w3 is [5, 3] but must be [5, 2]");
}

TEST_F(ExpertOps, PartsHaveARowPerTokenAndSlot) {
    Tensor rows = expert_rows(g, with_bias(), x, ids, slots, {.clamp = 7.0f});
    EXPECT_EQ(rows.shape(), Shape({5, 2, 64}));
    EXPECT_EQ(g.nodes().back().inputs.size(), 9u);
    EXPECT_EQ(g.nodes().back().inputs[2], slots);
    Tensor gate = expert_matmul(g, w.gate, {}, x, ids, slots);
    EXPECT_EQ(gate.shape(), Shape({5, 2, 96}));
    Tensor down = expert_matmul(g, w.down, weight("bias", {4, 64}), gate, ids, slots);
    EXPECT_EQ(down.shape(), Shape({5, 2, 64}));
    EXPECT_EQ(expert_select(g, ids, {{slots, rows}, {slots, down}}).shape(), Shape({5, 2, 64}));
    EXPECT_EQ(g.nodes().back().inputs.size(), 5u);
    EXPECT_EQ(expert_sum(g, weights, ids, {{slots, rows}}).shape(), Shape({5, 64}));
    Tensor copied = copy(g, ids);
    EXPECT_EQ(copied.shape(), ids.shape());
    EXPECT_EQ(copied.dtype(), DType::I32);
}

TEST_F(ExpertOps, PartsNameWhatDoesNotFit) {
    Tensor rows = expert_rows(g, w, x, ids, slots);
    EXPECT_EQ(refusal([&] { expert_rows(g, w, x, ids, i32("slots3", {3})); }),
              "expert_rows: slots slots3 is [3] but must be [4]");
    EXPECT_EQ(refusal([&] {
                  expert_matmul(g, w.gate, {}, f32("x3", {5, 3, 64}), ids, slots);
              }),
              "expert_matmul: x x3 is [5, 3, 64] but must be [5, 2, 64]");
    EXPECT_EQ(refusal([&] {
                  expert_matmul(g, w.gate, weight("b", {4, 64}), x, ids, slots);
              }),
              "expert_matmul: bias b is [4, 64] but must be [4, 96]");
    EXPECT_EQ(refusal([&] { expert_select(g, ids, {}); }), "expert_select: there are no rows of any device");
    EXPECT_EQ(refusal([&] {
                  expert_sum(g, weights, ids, {{slots, rows}, {i32("s5", {5}), rows}});
              }),
              "expert_sum: slots s5 is [5] but must be [4]");
    EXPECT_EQ(refusal([&] {
                  expert_sum(g, weights, ids, {{slots, f32("r", {5, 3, 64})}});
              }),
              "expert_sum: rows r is [5, 3, 64] but must be [5, 2, 64]");
    EXPECT_EQ(refusal([&] { expert_sum(g, {}, ids, {{slots, rows}}); }), "expert_sum: weights is missing");
    EXPECT_EQ(refusal([&] { copy(g, {}); }), "copy: x is missing");
}

}  // namespace
}  // namespace ggmlx
