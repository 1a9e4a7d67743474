// Devices with memory of their own that wait for flags by themselves: a double on any machine, and real cards.

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "ggmlx/backend/cuda/cuda_backend.h"
#include "ggmlx/backend/moe_runner.h"
#include "ggmlx/core/spin.h"
#include "ggmlx/reference/reference.h"

namespace ggmlx::test {
namespace {

/// Does what a card does, on the reference's kernels: copies both ways, waits for flags, sets its own, wakes nobody.
class CardDouble : public Wrapped {
  public:
    explicit CardDouble(const char* name) : Wrapped(make_reference_backend(name)) {}
    bool reaches_host() const override { return true; }
    void run(SegmentSource& source) override {
        const StepView& step = *source.step();
        for (const StepView::Part& part : step.parts) {
            for (int32_t segment : part.waits)
                while (step.done[static_cast<size_t>(segment)].load(std::memory_order_acquire) == 0) cpu_pause();
            for (const OpCall* call : part.calls) run_reference(*call);
            step.done[static_cast<size_t>(part.segment)].store(1, std::memory_order_release);
        }
    }
};

constexpr const char* kPlacements[] = {"",
                                       "_exps=ref1",
                                       "_exps@0-2=ref1",
                                       "_exps@1,3=ref1,_exps@0,5=ref2",
                                       "blk.0=ref1",
                                       "attn=ref1,ffn=ref2",
                                       "down_exps=ref1",
                                       "shexp=ref1,_exps@2-4=ref2",
                                       "cache_k=ref1",
                                       "norm=ref1,router=ref2,token_embd=ref1"};

class Cards : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, Cards, testing::Values(DType::F32, DType::Q8_0, DType::MXFP4),
                         [](const auto& param) { return std::string(name(param.param)); });

TEST_P(Cards, ADoubleGivesTheSameBitsInEveryPlacement) {
    const auto expected = Runner(GetParam(), "").two_steps();
    for (const char* rules : kPlacements) {
        EXPECT_TRUE(same_bits(expected, Runner(GetParam(), rules, std::make_unique<CardDouble>("cuda0")).two_steps()))
            << rules;
        EXPECT_TRUE(same_bits(expected, Runner(GetParam(), rules, std::make_unique<CardDouble>("cuda0"),
                                               std::make_unique<CardDouble>("ref1"))
                                            .two_steps()))
            << rules << " on two cards";
    }
}

TEST(Card, CopiesToTheHostAreStepsOfTheCard) {
    Runner runner(DType::F32, "_exps=ref1", std::make_unique<CardDouble>("cuda0"));
    const Program program = runner.program(1);
    for (const Segment& segment : program.plan().segments)
        for (const PlanStep& step : segment.steps)
            EXPECT_TRUE(step.op != Op::Copy || segment.device == 0) << program.plan().to_string();
}

/// Skips the test where there is no card.
#define GGMLX_NEEDS_CARD() \
    if (const CudaCards cards = find_cuda_cards(); cards.count == 0) GTEST_SKIP() << "no CUDA card: " << cards.problem

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    float largest = a.size() == b.size() ? 0.0f : INFINITY;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
    return largest;
}

/// Dense parts add in another order on a card; where they stay on it, moving experts changes no bit.
TEST_P(Cards, ACardGivesTheSameBitsWhereverExpertsLive) {
    GGMLX_NEEDS_CARD();
    for (const auto handover : {CudaOptions::Handover::Flags, CudaOptions::Handover::Host}) {
        const auto card = [&] { return make_cuda_backend(0, {.handover = handover}); };
        const auto expected = Runner(GetParam(), "", card()).two_steps();
        EXPECT_LT(largest_difference(Runner(GetParam(), "").two_steps(), expected), 1e-3f);
        if (GetParam() == DType::F32) continue;  // float products of experts add in another order too
        std::mt19937 random(11);
        for (int round = 0; round < 50; ++round) {
            std::string rules;
            for (int e = 0; e < 6; ++e)
                if (const auto to = random() % 3; to > 0)
                    rules += std::string(rules.empty() ? "" : ",") + "blk." + std::to_string(random() % 2) +
                             "\\..*_exps@" + std::to_string(e) + "=ref" + std::to_string(to);
            EXPECT_TRUE(same_bits(expected, Runner(GetParam(), rules, card()).two_steps())) << rules;
        }
    }
}

TEST_P(Cards, ACardWorksInEveryPlacement) {
    GGMLX_NEEDS_CARD();
    const auto expected = Runner(GetParam(), "").two_steps();
    for (const char* rules : kPlacements)
        EXPECT_LT(largest_difference(expected, Runner(GetParam(), rules, make_cuda_backend(0)).two_steps()), 1e-3f)
            << rules;
}

/// Answers late.
class Late : public Wrapped {
  public:
    Late() : Wrapped(make_reference_backend("ref1")) {}
    void run(SegmentSource& source) override {
        std::this_thread::sleep_for(std::chrono::seconds(5));
        Wrapped::run(source);
    }
};

TEST(Card, AStalledStepNamesTheLayerThatIsWaitedFor) {
    GGMLX_NEEDS_CARD();
    Runner runner(DType::Q8_0, "blk.1\\..*_exps=ref1",
                  make_cuda_backend(0, {.stall_timeout = std::chrono::milliseconds(500)}), std::make_unique<Late>());
    auto program = runner.program(1);
    try {
        runner.feed(program, {3}, 0);
        FAIL() << "a step ended in time although an answer came 5 s late";
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Device);
        EXPECT_NE(std::string(e.what()).find("it waits for blk.1 on ref1"), std::string::npos) << e.what();
    }
}

TEST(Card, TooMuchMemoryIsRefusedWithTheNumbers) {
    GGMLX_NEEDS_CARD();
    try {
        make_cuda_backend(0)->alloc(size_t{1} << 50);
        FAIL() << "allocated a pebibyte";
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory);
        EXPECT_EQ(std::string(e.what()).rfind("cuda0: cannot allocate 1125899906842624 bytes; ", 0), 0u) << e.what();
    }
}

TEST(Card, ABuildOrMachineWithoutThemSaysWhy) {
    const CudaCards cards = find_cuda_cards();
    if (cards.count > 0) GTEST_SKIP() << "this machine has a card";
    EXPECT_FALSE(cards.problem.empty());
    EXPECT_THROW(make_cuda_backend(0), Error);
}

}  // namespace
}  // namespace ggmlx::test
