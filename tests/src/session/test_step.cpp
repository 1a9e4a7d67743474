#include <gtest/gtest.h>

#include <random>

#include "src/session/step.h"

namespace llm {
namespace {

TEST(PlanSize, PadsToTheNextSizeAndNeverBeyondTheLargest) {
    const std::vector<std::pair<int64_t, int64_t>> cases{{1, 1},   {2, 2},     {3, 4},     {5, 6},
                                                         {7, 8},   {9, 16},    {17, 24},   {25, 32},
                                                         {49, 64}, {130, 192}, {300, 384}, {385, 500}};
    for (const auto& [n, size] : cases) EXPECT_EQ(plan_size(n, 500), size) << n;
    EXPECT_EQ(plan_size(3, 3), 3);
    EXPECT_EQ(plan_size(1, 1), 1);
    EXPECT_EQ(plan_size(1000, 1000), 1000);
}

TEST(CutIntoSteps, KeepsAShortBatchWhole) {
    const std::vector<StepItem> items{{3, 1}, {1, 1}, {2, 2}};
    const auto steps = cut_into_steps(items, {16, 16, 4});
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].parts, (std::vector<StepPart>{{0, 0, 3, 1}, {1, 0, 1, 1}, {2, 0, 2, 2}}));
    EXPECT_EQ(steps[0].n_tokens, 6);
    EXPECT_EQ(steps[0].n_outputs, 4);
}

TEST(CutIntoSteps, CutsALongPromptAndWantsLogitsOnlyAtItsEnd) {
    const std::vector<StepItem> items{{10, 1}};
    const auto steps = cut_into_steps(items, {4, 1, 1});
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_EQ(steps[0].parts, (std::vector<StepPart>{{0, 0, 4, 0}}));
    EXPECT_EQ(steps[1].parts, (std::vector<StepPart>{{0, 4, 4, 0}}));
    EXPECT_EQ(steps[2].parts, (std::vector<StepPart>{{0, 8, 2, 1}}));
}

TEST(CutIntoSteps, CutsWhereLogitsNoLongerFit) {
    const std::vector<StepItem> items{{6, 3}};
    const auto steps = cut_into_steps(items, {8, 2, 1});
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].parts, (std::vector<StepPart>{{0, 0, 5, 2}}));
    EXPECT_EQ(steps[1].parts, (std::vector<StepPart>{{0, 5, 1, 1}}));
}

TEST(CutIntoSteps, OfNothingIsNothing) {
    EXPECT_TRUE(cut_into_steps({}, {8, 2, 1}).empty());
    const std::vector<StepItem> empty_items(3);
    EXPECT_TRUE(cut_into_steps(empty_items, {8, 2, 1}).empty());
}

TEST(CutIntoSteps, CoversEveryTokenOnceAndStaysWithinLimits) {
    std::mt19937 random(1);
    for (int round = 0; round < 2000; ++round) {
        const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
        const StepLimits limits{1 + below(9), 1 + below(5), 1 + below(4)};
        std::vector<StepItem> items(static_cast<size_t>(1 + below(5)));
        for (StepItem& i : items) {
            i.n_tokens = below(20);
            i.n_outputs = below(i.n_tokens + 1);
        }
        std::vector<int64_t> done(items.size(), 0), outputs(items.size(), 0);
        for (const Step& step : cut_into_steps(items, limits)) {
            int64_t n_tokens = 0, n_outputs = 0;
            for (const StepPart& p : step.parts) {
                ASSERT_EQ(p.first, done[p.item]);
                ASSERT_GT(p.n_tokens, 0);
                done[p.item] += p.n_tokens;
                outputs[p.item] += p.n_outputs;
                const int64_t wanted =
                    done[p.item] - std::max(p.first, items[p.item].n_tokens - items[p.item].n_outputs);
                ASSERT_EQ(p.n_outputs, std::max<int64_t>(wanted, 0));
                n_tokens += p.n_tokens;
                n_outputs += p.n_outputs;
            }
            ASSERT_EQ(step.n_tokens, n_tokens);
            ASSERT_EQ(step.n_outputs, n_outputs);
            ASSERT_LE(n_tokens, limits.n_tokens);
            ASSERT_LE(n_outputs, limits.n_outputs);
            ASSERT_LE(static_cast<int64_t>(step.parts.size()), limits.n_sequences);
        }
        for (size_t i = 0; i < items.size(); ++i) {
            ASSERT_EQ(done[i], items[i].n_tokens);
            ASSERT_EQ(outputs[i], items[i].n_outputs);
        }
    }
}

}  // namespace
}  // namespace llm
