// Which steps of a plan may run at the same time, and that their memory does not overlap.

#include "ggmlx/placement/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ggmlx/graph/ops.h"

namespace ggmlx {
namespace {

/// Three products of one normalised row, their sum, and a cache that is written and then written again.
struct RoundsModel {
    TensorSet set;
    Placement placement;
    Plan plan;

    RoundsModel() {
        auto graph = std::make_shared<Graph>();
        std::vector<Tensor> w;
        for (const char* weight : {"a", "b", "c"}) w.push_back(set.add(weight, DType::Q8_0, {32, 32}, Role::Dense));
        const Tensor cache = set.add("cache", DType::F32, {2, 1, 4, 32}, Role::Cache, TensorKind::State);
        const Tensor x = rms_norm(*graph, graph->input("x", DType::F32, {5, 32}), {}, 1e-5f);
        const Tensor a = matmul(*graph, w[0], x), b = matmul(*graph, w[1], x), c = matmul(*graph, w[2], x);
        const Tensor slots = graph->input("slots", DType::I32, {5});
        const auto heads = [&](Tensor t) { return reshape(*graph, t, {5, 1, 32}); };
        const Tensor once = cache_append(*graph, cache, heads(a), slots);
        cache_append(*graph, once, heads(b), slots);
        graph->output(add(*graph, add(*graph, a, b), c), "y");
        const auto yes = [](const Node&) { return true; };
        const auto scratch = [](const Node&) { return size_t{100}; };
        placement = place(set, {}, std::vector<std::string>{"cpu"}, 0);
        plan = make_plan({.graph = graph, .placement = &placement, .devices = {{"cpu", yes, scratch}}});
    }

    std::vector<int32_t> rounds() const {
        std::vector<int32_t> list;
        for (const PlanStep& step : plan.segments.at(0).steps) list.push_back(step.round);
        return list;
    }
};

TEST(Rounds, StepsThatDoNotNeedEachOtherShareOne) {
    const RoundsModel model;
    ASSERT_EQ(model.plan.segments.size(), 1u);
    //                                                norm  a  b  c  append again  add add
    EXPECT_EQ(model.rounds(), (std::vector<int32_t>{0, 1, 1, 1, 2, 3, 3, 4}));
}

TEST(Rounds, WhatARoundTouchesHasMemoryOfItsOwn) {
    const RoundsModel model;
    struct Piece {
        uint64_t begin, end;
        int32_t round;
    };
    std::vector<Piece> written;
    for (const PlanStep& step : model.plan.segments[0].steps) {
        written.push_back({step.scratch_offset, step.scratch_offset + step.scratch_bytes, step.round});
        for (int32_t v : step.outputs) {
            const PlanValue& value = model.plan.values[static_cast<size_t>(v)];
            if (value.memory == PlanValue::Memory::Arena)
                written.push_back({value.offset, value.offset + value.size_bytes, step.round});
        }
    }
    int n_pairs = 0;
    for (size_t i = 0; i < written.size(); ++i)
        for (size_t j = 0; j < i; ++j) {
            if (written[i].round != written[j].round) continue;
            ++n_pairs;
            EXPECT_TRUE(written[i].end <= written[j].begin || written[j].end <= written[i].begin) << i << " " << j;
        }
    EXPECT_GE(n_pairs, 15);  // outputs and scratch of the three products alone
}

}  // namespace
}  // namespace ggmlx
