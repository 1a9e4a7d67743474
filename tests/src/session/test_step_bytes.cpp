// What a step has to read, counted from its graph.

#include "src/session/step_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ggmlx/graph/ops.h"

namespace llm {
namespace {

using ggmlx::DType;
using ggmlx::Graph;
using ggmlx::Role;
using ggmlx::TensorSet;

TEST(StepBytes, CountAMatrixOnceAndOfATableTheRowsLookedUp) {
    TensorSet set;
    const auto table = set.add("token_embd.weight", DType::F32, {100, 64}, Role::Embedding);
    const auto w = set.add("w", DType::F32, {64, 64}, Role::Dense);
    Graph graph;
    const auto x = ggmlx::get_rows(graph, table, graph.input("ids", DType::I32, {3}));
    ggmlx::matmul(graph, w, ggmlx::matmul(graph, w, x));
    EXPECT_EQ(weight_bytes(graph), (3u * 64 + 64 * 64) * sizeof(float));
}

TEST(StepBytes, CountAsManyExpertsAsTokensCanChoose) {
    TensorSet set;
    const auto gate = set.add("gate", DType::F32, {8, 32, 64}, Role::Expert);
    const auto up = set.add("up", DType::F32, {8, 32, 64}, Role::Expert);
    const auto down = set.add("down", DType::F32, {8, 64, 32}, Role::Expert);
    for (const int64_t n_tokens : {1, 2, 5}) {
        Graph graph;
        const auto x = graph.input("x", DType::F32, {n_tokens, 64});
        const auto ids = graph.input("ids", DType::I32, {n_tokens, 3});
        const auto weights = graph.input("weights", DType::F32, {n_tokens, 3});
        ggmlx::experts(graph, {gate, up, down, {}, {}, {}}, x, ids, weights);
        const auto n_read = static_cast<uint64_t>(std::min<int64_t>(3 * n_tokens, 8));
        EXPECT_EQ(weight_bytes(graph), n_read * 3 * 32 * 64 * sizeof(float)) << n_tokens;
    }
}

TEST(StepBytes, CountCachedRowsWithinTheWindow) {
    TensorSet set;
    const auto cache = [&](const char* name, int64_t head_dim) {
        return set.add(name, DType::F16, {4, 2, 128, head_dim}, Role::Cache, ggmlx::TensorKind::State);
    };
    const auto k = cache("k", 16), v = cache("v", 8);
    const auto bytes = [&](ggmlx::Tensor values, ggmlx::AttentionParams params) {
        Graph graph;
        const auto i32 = [&](const char* name, ggmlx::Shape shape) { return graph.input(name, DType::I32, shape); };
        ggmlx::attention(graph,
                         {graph.input("q", DType::F32, {1, 4, 16}),
                          k,
                          values,
                          i32("table", {1, 4}),
                          i32("sequence", {1}),
                          i32("positions", {1}),
                          {}},
                         params);
        return cache_bytes(graph, 300);
    };
    EXPECT_EQ(bytes(v, {.scale = 1.0f}), 300u * 2 * (16 + 8) * 2);
    EXPECT_EQ(bytes(v, {.scale = 1.0f, .window = 100}), 100u * 2 * (16 + 8) * 2);
    EXPECT_EQ(bytes(k, {.scale = 1.0f, .head_dim_v = 8}), 300u * 2 * 16 * 2);  // values are part of the keys
}

/// 16,384 bytes of a dense matrix, then experts of as many bytes chosen (4 of 4), half of them on the second device.
TEST(StepBytes, TakeTheirTimeOneAfterTheOtherButExpertsOfTwoDevicesTogether) {
    TensorSet set;
    const auto dense = set.add("dense", DType::F32, {64, 64}, Role::Dense);
    const auto stack = [&](const char* name) { return set.add(name, DType::F32, {4, 64, 64}, Role::Expert); };
    const auto gate = stack("gate"), up = stack("up"), down = stack("down");
    Graph graph;
    graph.set_scope("blk.0");
    const auto x = ggmlx::matmul(graph, dense, graph.input("x", DType::F32, {1, 64}));
    ggmlx::experts(graph, {gate, up, down, {}, {}, {}}, x, graph.input("ids", DType::I32, {1, 4}),
                   graph.input("weights", DType::F32, {1, 4}));
    ggmlx::Placement placement;
    placement.homes = {{{0}, {-1}}};
    for (int i = 0; i < 3; ++i) placement.homes.push_back({{0, 1, 0, 1}, {-1, -1, -1, -1}});
    const double matrix = 64 * 64 * sizeof(float), half_of_experts = 3 * 2 * matrix;
    const auto seconds = [&](double first, double second) {
        const std::vector<double> rates = {first, second};
        return least_seconds(graph, placement, rates, 0);
    };
    EXPECT_DOUBLE_EQ(seconds(matrix, matrix), 1 + half_of_experts / matrix);
    EXPECT_DOUBLE_EQ(seconds(matrix, 2 * matrix), 1 + half_of_experts / matrix) << "the slower device decides";
    EXPECT_DOUBLE_EQ(seconds(2 * matrix, matrix), 0.5 + half_of_experts / matrix);
    EXPECT_DOUBLE_EQ(seconds(0, matrix), half_of_experts / matrix) << "a device without a rate takes no time";
}

}  // namespace
}  // namespace llm
