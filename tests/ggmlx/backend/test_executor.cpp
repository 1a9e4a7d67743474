// Executor and device weights, at graph level: any placement gives the same bits, devices work side by side, experts
// move without a new plan, faults and failures become errors.

#include <gtest/gtest.h>

#include <random>

#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/executor.h"
#include "ggmlx/backend/moe_runner.h"
#include "ggmlx/backend/reference_backend.h"

namespace ggmlx {
namespace {

using namespace test;

class ExecutorTypes : public testing::TestWithParam<DType> {};

TEST_P(ExecutorTypes, EveryPlacementGivesTheSameBits) {
    const auto expected = Runner(GetParam(), "").two_steps();
    for (const char* rules :
         {"blk.0=ref1", "attn=ref1,ffn=ref2", "_exps=ref1", "_exps@0-2=ref1", "_exps@1,3=ref1,_exps@0,5=ref2",
          "exps@0-3=ref2,blk.1=ref1", "down_exps=ref1", "blk.1.ffn_up_exps@0-1=ref2,shexp=ref1",
          "gate_exps@0-2=ref1,up_exps@1-4=ref2,down_exps@5=ref1", "cache_k=ref1,cache_v=ref1", "cache_k=ref1",
          "blk.0.cache_v=ref2,blk.1.cache_k=ref1", "norm=ref1,router=ref2,token_embd=ref1"})
        EXPECT_TRUE(same_bits(expected, Runner(GetParam(), rules).two_steps())) << rules;
}

TEST_P(ExecutorTypes, FiftyRandomPlacementsOfSingleTensorsGiveTheSameBits) {
    const auto expected = Runner(GetParam(), "").two_steps();
    std::mt19937 random(11);
    for (int round = 0; round < 50; ++round) {
        TensorSet set;
        add_moe_tensors(set, GetParam());
        std::string rules;
        for (int32_t id = 0; id < set.size(); ++id) {
            const std::string device = "=ref" + std::to_string(random() % 3);
            rules += (rules.empty() ? "" : ",") + set[id].name();
            if (set[id].info().role == Role::Expert)
                rules += "@" + std::to_string(random() % 3) + "-" + std::to_string(3 + random() % 3);
            rules += device;
        }
        EXPECT_TRUE(same_bits(expected, Runner(GetParam(), rules).two_steps())) << rules;
    }
}

TEST_P(ExecutorTypes, AnExpertMovesWithoutANewPlan) {
    const auto expected = Runner(GetParam(), "").two_steps();
    Runner runner(GetParam(), "_exps@0-2=ref1");
    auto prompt = runner.program(5), next = runner.program(1);
    auto logits = runner.feed(prompt, {3, 1, 4, 1, 5}, 0);
    for (int32_t p = 5; p < 9; ++p) {
        const auto partner = [p](int il) { return 3 + (p + il) % 3; };
        runner.swap_experts(p % 3, partner);
        const auto more = runner.feed(next, {p * 3}, p);
        logits.insert(logits.end(), more.begin(), more.end());
        // Swapped back, or expert numbers would no longer be on the sides that the next swap expects.
        runner.swap_experts(p % 3, partner);
        runner.swap_experts(0, [](int) { return 5; });
        runner.swap_experts(5, [](int) { return 0; });
    }
    EXPECT_TRUE(same_bits(expected, logits));
}

class DealtOut : public testing::TestWithParam<int> {};

TEST_P(DealtOut, ExpertsGiveTheSameBits) {
    for (DType type : {DType::Q8_0, DType::MXFP8, DType::F16}) {
        const auto expected = Runner(type, "").two_steps();
        for (const char* rules :
             {"", "_exps@0-2=ref1", "down_exps=ref1", "blk.1.ffn_up_exps@0-1=ref2", "down_exps@5=ref1,_exps@5=ref2"})
            EXPECT_TRUE(same_bits(expected, Runner(type, rules, sharding_cpu(GetParam())).two_steps()))
                << name(type) << " " << rules;
    }
}

TEST_P(DealtOut, ExpertsMoveToAnotherDeviceAndBack) {
    const auto expected = Runner(DType::MXFP4, "").two_steps();
    Runner runner(DType::MXFP4, "_exps@0-2=ref1", sharding_cpu(GetParam()));
    auto prompt = runner.program(5), next = runner.program(1);
    auto logits = runner.feed(prompt, {3, 1, 4, 1, 5}, 0);
    for (int32_t p = 5; p < 9; ++p) {
        const auto partner = [p](int il) { return 3 + (p + il) % 3; };
        runner.swap_experts(p % 3, partner);
        const auto more = runner.feed(next, {p * 3}, p);
        logits.insert(logits.end(), more.begin(), more.end());
        runner.swap_experts(p % 3, partner);
    }
    EXPECT_TRUE(same_bits(expected, logits));
    EXPECT_GT(runner.weights().host_weights().sharded_bytes, 0u);
}

TEST_P(DealtOut, WhatStaysWholeIsSaid) {
    EXPECT_EQ(Runner(DType::Q8_0, "", sharding_cpu(GetParam())).whole_experts(), "");
    EXPECT_EQ(Runner(DType::Q8_0, "blk.0.ffn_up_exps@5=ref1", sharding_cpu(GetParam())).whole_experts(),
              "1 of 2 layers have gate, up and down on different devices");
}

INSTANTIATE_TEST_SUITE_P(Nodes, DealtOut, testing::Values(2, 4, 8));

INSTANTIATE_TEST_SUITE_P(Types, ExecutorTypes, testing::Values(DType::F32, DType::Q8_0, DType::MXFP4),
                         [](const auto& param) { return std::string(name(param.param)); });

TEST(Executor, SwapMovesTheExpertAndItsSlot) {
    Runner runner(DType::F32, "_exps@0-2=ref1");
    const auto group = runner.layer_experts(0);
    auto table = [&](DeviceId d) {
        const auto t = runner.weights().slot_table(group[0], d);
        return std::vector<int32_t>(t.begin(), t.end());
    };
    EXPECT_EQ(table(1), (std::vector<int32_t>{0, 1, 2, -1, -1, -1}));
    EXPECT_EQ(table(0), (std::vector<int32_t>{-1, -1, -1, 0, 1, 2}));
    runner.weights().swap_experts(group, 1, 5);
    EXPECT_EQ(table(1), (std::vector<int32_t>{0, -1, 2, -1, -1, 1}));
    EXPECT_EQ(table(0), (std::vector<int32_t>{-1, 2, -1, 0, 1, -1}));
    EXPECT_THROW(runner.weights().swap_experts(group, 1, 3), Error) << "both live on ref0";
    EXPECT_THROW(runner.weights().swap_experts(group, 0, 6), Error);
    const Tensor dense = runner.set().get("token_embd.weight");
    EXPECT_THROW(runner.weights().swap_experts({&dense, 1}, 0, 1), Error);
}

TEST(Executor, AFaultNamesLayerOpDeviceAndRow) {
    Runner runner(DType::F32, "blk.0=ref1");
    auto program = runner.program(5);
    try {
        runner.feed(program, {3, 1, 99, 1, 5}, 0);
        FAIL() << "an id beyond the vocabulary went through";
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Device);
        EXPECT_NE(std::string(e.what()).find("get_rows on ref0"), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("row 2"), std::string::npos) << e.what();
    }
    EXPECT_NO_THROW(runner.feed(program, {3, 1, 4, 1, 5}, 0)) << "the next step starts afresh";
}

TEST(Executor, InputsAreCheckedByNameAndSize) {
    Runner runner(DType::F32, "");
    auto program = runner.program(2);
    const std::vector<int32_t> ids = {1};
    EXPECT_THROW(runner.executor().set_input(program, "ids", std::as_bytes(std::span(ids))), Error);
    EXPECT_THROW(runner.executor().set_input(program, "idz", std::as_bytes(std::span(ids))), Error);
    EXPECT_THROW(runner.executor().run(program), Error) << "inputs were not set";
}

/// A backend whose kernels fail.
class Broken : public Wrapped {
  public:
    using Wrapped::Wrapped;
    void run(SegmentSource& source) override {
        source.next();
        fail(ErrorKind::Device, "{} broke", name());
    }
};

TEST(Executor, ADeviceThatThrowsStopsTheStepInsteadOfHangingIt) {
    TensorSet set;
    add_moe_tensors(set, DType::F32);
    auto good = make_reference_backend("ref0");
    Broken bad(make_reference_backend("ref1"));
    const std::vector<std::string> names = {"ref0", "ref1"};
    const auto rules = parse_rules("_exps=ref1");
    DeviceWeights weights(set, place(set, rules, names, 0), {good.get(), &bad});
    const StoredWeights source(set);
    weights.load([&](Tensor t) { return source(t); });
    weights.allocate_states();
    Executor executor(weights);
    Program program = executor.prepare(make_plan({.graph = moe_graph(set, 1),
                                                  .placement = &weights.placement(),
                                                  .devices = executor.plan_devices(),
                                                  .fallback_device = 0}));
    const std::vector<int32_t> zero = {0}, table = {0, 1, 2};
    for (const char* name : {"ids", "positions", "sequence", "slots"})
        executor.set_input(program, name, std::as_bytes(std::span(zero)));
    executor.set_input(program, "block_table", std::as_bytes(std::span(table)));
    for (int i = 0; i < 3; ++i) EXPECT_THROW(executor.run(program), Error);
}

}  // namespace
}  // namespace ggmlx
