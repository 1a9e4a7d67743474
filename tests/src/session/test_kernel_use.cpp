// Which weights count as multiplied, and with how many bytes on which device.

#include "src/session/kernel_use.h"

#include <gtest/gtest.h>

#include "ggmlx/graph/ops.h"

namespace llm {
namespace {

using ggmlx::DType;
using ggmlx::Graph;
using ggmlx::Role;
using ggmlx::TensorSet;

/// A table that is looked up, two dense matrices (one used twice), a norm, and four experts.
std::shared_ptr<const Graph> small_model(TensorSet& set) {
    const auto graph = std::make_shared<Graph>();
    const auto table = set.add("token_embd.weight", DType::Q8_0, {100, 64}, Role::Embedding);
    const auto norm = set.add("norm.weight", DType::F32, {64}, Role::Norm);
    const auto dense = set.add("dense.weight", DType::F32, {64, 64}, Role::Dense);
    const auto other = set.add("other.weight", DType::F32, {64, 64}, Role::Dense);
    const auto gate = set.add("gate.weight", DType::MXFP4, {4, 32, 64}, Role::Expert);
    const auto up = set.add("up.weight", DType::MXFP4, {4, 32, 64}, Role::Expert);
    const auto down = set.add("down.weight", DType::Q8_0, {4, 64, 32}, Role::Expert);
    auto x = ggmlx::get_rows(*graph, table, graph->input("ids", DType::I32, {3}));
    x = ggmlx::rms_norm(*graph, x, norm, 1e-6f);
    x = ggmlx::matmul(*graph, other, ggmlx::matmul(*graph, dense, ggmlx::matmul(*graph, dense, x)));
    const auto chosen = graph->input("chosen", DType::I32, {3, 2});
    const auto weights = graph->input("weights", DType::F32, {3, 2});
    graph->output(ggmlx::experts(*graph, {gate, up, down, {}, {}, {}}, x, chosen, weights), "y");
    return graph;
}

std::vector<KernelUse> use_with(const char* rules) {
    const auto yes = [](const ggmlx::Node&) { return true; };
    const auto none = [](const ggmlx::Node&) { return size_t{0}; };
    const std::vector<std::string> names = {"cpu", "ref0"};
    TensorSet set;
    const auto graph = small_model(set);
    const auto parsed = ggmlx::parse_rules(rules);
    const ggmlx::Placement placement = ggmlx::place(set, parsed, names, 0);
    const std::vector<ggmlx::PlanDevice> devices = {{"cpu", yes, none}, {"ref0", yes, none}};
    return count_kernel_use(
        ggmlx::make_plan({.graph = graph, .placement = &placement, .devices = devices, .fallback_device = 0}),
        placement);
}

void expect_use(const KernelUse& use, ggmlx::DeviceId device, DType dtype, int64_t n, uint64_t bytes) {
    EXPECT_EQ(use.device, device);
    EXPECT_EQ(use.dtype, dtype);
    EXPECT_EQ(use.n_tensors, n);
    EXPECT_EQ(use.size_bytes, bytes);
}

constexpr uint64_t kDense = 64 * 64 * 4;                                   // bytes of one
constexpr uint64_t kMxfp4Expert = 32 * 64 / 32 * 17, kQ8Expert = 64 * 34;  // of one expert's matrix

TEST(KernelUse, CountsEveryMultipliedMatrixOnce) {
    const auto uses = use_with(".*=cpu");
    ASSERT_EQ(uses.size(), 3u);
    expect_use(uses[0], 0, DType::F32, 2, 2 * kDense);
    expect_use(uses[1], 0, DType::MXFP4, 2, 2 * 4 * kMxfp4Expert);
    expect_use(uses[2], 0, DType::Q8_0, 1, 4 * kQ8Expert);
}

TEST(KernelUse, CountsExpertsWhereTheyLive) {
    const auto uses = use_with("(gate|up|down).*@0-0=ref0,other=ref0");
    ASSERT_EQ(uses.size(), 6u);
    expect_use(uses[0], 0, DType::F32, 1, kDense);
    expect_use(uses[1], 0, DType::MXFP4, 2, 2 * 3 * kMxfp4Expert);
    expect_use(uses[2], 0, DType::Q8_0, 1, 3 * kQ8Expert);
    expect_use(uses[3], 1, DType::F32, 1, kDense);
    expect_use(uses[4], 1, DType::MXFP4, 2, 2 * kMxfp4Expert);
    expect_use(uses[5], 1, DType::Q8_0, 1, kQ8Expert);
}

}  // namespace
}  // namespace llm
