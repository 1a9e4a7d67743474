// The choice of experts, against the same rules in float64.

#include <algorithm>
#include <numeric>

#include "support.h"

namespace ggmlx::test {
namespace {

using Score = RouterParams::Score;

struct Routed {
    std::vector<float> weights;
    std::vector<int32_t> ids;
    Fault fault;
    int64_t row;
};

Routed route(const RouterParams& params, const std::vector<float>& logits, int64_t n_tokens,
             const std::vector<float>& bias = {}, std::vector<int32_t> rows = {}) {
    const int64_t n_expert = static_cast<int64_t>(logits.size()) / n_tokens;
    Array x({n_tokens, n_expert}, logits), b({static_cast<int64_t>(bias.size())}, bias);
    rows.resize(static_cast<size_t>(n_tokens), 0);
    Array r({n_tokens}, rows), weights(DType::F32, {n_tokens, params.k}), ids(DType::I32, {n_tokens, params.k});
    std::vector<Array*> in = {&x, &r};
    if (!bias.empty()) in.push_back(&b);
    OpRun run(Op::Router, params, in, {&weights, &ids});
    return {weights.floats(),
            {ids.as<int32_t>(), ids.as<int32_t>() + n_tokens * params.k},
            run.status.fault(),
            run.status.row()};
}

/// Indices by falling value; the values of these tests are far enough apart that float32 sees the same order.
std::vector<int32_t> by_value(const std::vector<double>& values) {
    std::vector<int32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
    });
    return order;
}

std::vector<double> softmax64(const std::vector<double>& x) {
    const double largest = *std::max_element(x.begin(), x.end());
    std::vector<double> y;
    for (double v : x) y.push_back(std::exp(v - largest));
    const double sum = std::accumulate(y.begin(), y.end(), 0.0);
    for (double& v : y) v /= sum;
    return y;
}

struct Exact {
    std::vector<int32_t> ids;
    std::vector<double> weights;
};

Exact exact(const RouterParams& p, const std::vector<float>& logits, const std::vector<float>& bias) {
    std::vector<double> score(logits.begin(), logits.end());
    if (p.score == Score::Softmax) score = softmax64(score);
    if (p.score == Score::Sigmoid)
        for (double& v : score) v = 1 / (1 + std::exp(-v));
    std::vector<double> choice = score;
    for (size_t e = 0; e < bias.size(); ++e) choice[e] += bias[e];
    const size_t size = score.size() / static_cast<size_t>(p.n_groups);
    std::vector<double> worth;
    for (int g = 0; g < p.n_groups; ++g) {
        std::vector<double> group(choice.begin() + static_cast<std::ptrdiff_t>(size) * g,
                                  choice.begin() + static_cast<std::ptrdiff_t>(size) * (g + 1));
        std::sort(group.rbegin(), group.rend());
        worth.push_back(std::accumulate(group.begin(), group.begin() + p.group_best, 0.0));
    }
    const auto groups = by_value(worth);
    std::vector<bool> used(groups.size(), false);
    for (int i = 0; i < p.groups_used; ++i) used[static_cast<size_t>(groups[static_cast<size_t>(i)])] = true;
    for (size_t e = 0; e < choice.size(); ++e)
        if (!used[e / size]) choice[e] = -INFINITY;
    Exact result;
    for (int32_t id : by_value(choice)) {
        if (result.ids.size() == static_cast<size_t>(p.k)) break;
        result.ids.push_back(id);
        result.weights.push_back(score[static_cast<size_t>(id)]);
    }
    if (p.score == Score::SoftmaxOfChosen) result.weights = softmax64(result.weights);
    const double sum = std::accumulate(result.weights.begin(), result.weights.end(), 0.0);
    for (double& w : result.weights) w = w / (p.normalize ? std::max(sum, 1e-20) : 1.0) * static_cast<double>(p.scale);
    return result;
}

const std::vector<RouterParams> kRules = {
    {.score = Score::Softmax, .k = 2, .normalize = true},
    {.score = Score::Softmax, .k = 8, .normalize = false},
    {.score = Score::Softmax, .k = 6, .n_groups = 8, .groups_used = 3, .group_best = 1, .scale = 16.0f},
    {.score = Score::Sigmoid,
     .k = 8,
     .n_groups = 8,
     .groups_used = 4,
     .group_best = 2,
     .normalize = true,
     .scale = 2.5f},
    {.score = Score::Sigmoid, .k = 32, .normalize = true},
    {.score = Score::Sigmoid, .k = 1, .n_groups = 32, .groups_used = 1, .group_best = 1},
    {.score = Score::SoftmaxOfChosen, .k = 4},
};

TEST(Router, ChoosesAndWeighsLikeFloat64) {
    Random random(1);
    const int64_t n_tokens = 40, n_expert = 32;
    for (const RouterParams& p : kRules) {
        for (bool biased : {false, true}) {
            const auto logits = random_floats(random, n_tokens * n_expert, 2.0f);
            const auto bias = biased ? random_floats(random, n_expert, 0.3f) : std::vector<float>();
            const Routed got = route(p, logits, n_tokens, bias);
            EXPECT_EQ(got.fault, Fault::None);
            for (int64_t t = 0; t < n_tokens; ++t) {
                const std::vector<float> row(logits.begin() + t * n_expert, logits.begin() + (t + 1) * n_expert);
                const Exact want = exact(p, row, bias);
                for (int32_t s = 0; s < p.k; ++s) {
                    const auto i = static_cast<size_t>(t * p.k + s);
                    ASSERT_EQ(got.ids[i], want.ids[static_cast<size_t>(s)]) << "token " << t << " slot " << s;
                    // An exponential of a rounded argument (below 16 in size), sums of 32, two divisions, a product;
                    // above and below the line.
                    ASSERT_NEAR(got.weights[i], want.weights[static_cast<size_t>(s)],
                                2 * (16 + 32) * kEps * want.weights[static_cast<size_t>(s)]);
                }
            }
        }
    }
}

TEST(Router, PrefersTheLowerIndexAmongEquals) {
    EXPECT_EQ(route({.score = Score::Sigmoid, .k = 3}, {1, 5, 3, 5, -1, 3}, 1).ids, (std::vector<int32_t>{1, 3, 2}));
    EXPECT_EQ(route({.score = Score::SoftmaxOfChosen, .k = 2}, {0, 0, 0, 0}, 1).weights,
              (std::vector<float>{0.5f, 0.5f}));
    // Groups 0 and 1 are worth the same: the first is used.
    const RouterParams grouped{.score = Score::Sigmoid, .k = 2, .n_groups = 3, .groups_used = 1, .group_best = 2};
    EXPECT_EQ(route(grouped, {2, 1, 1, 2, 0, 0}, 1).ids, (std::vector<int32_t>{0, 1}));
}

TEST(Router, LetsTheBiasChooseButNotWeigh) {
    const Routed r = route({.score = Score::Sigmoid, .k = 1}, {3, 0}, 1, {0, 2});
    EXPECT_EQ(r.ids, std::vector<int32_t>{1});
    EXPECT_EQ(r.weights, std::vector<float>{0.5f});
}

TEST(Router, NeverChoosesFromAnUnusedGroup) {
    // With the bias every choice of the used group is negative, which must not count less than being left out.
    const RouterParams p{.score = Score::Sigmoid, .k = 2, .n_groups = 2, .groups_used = 1, .group_best = 2};
    EXPECT_EQ(route(p, {0, 0, 0, 0}, 1, {-9, -9, -5, -5}).ids, (std::vector<int32_t>{2, 3}));
}

TEST(Router, TellsApartWhatWouldTieInBf16) { EXPECT_EQ(route({.k = 1}, {1.0f, 1.0001f}, 1).ids[0], 1); }

TEST(Router, ReportsARowWithANonFiniteLogit) {
    for (float bad : {NAN, INFINITY, -INFINITY})
        for (Score score : {Score::Softmax, Score::Sigmoid, Score::SoftmaxOfChosen}) {
            const Routed r = route({.score = score, .k = 2}, {1, 2, 3, 4, bad, 0}, 2);
            EXPECT_EQ(r.fault, Fault::NonFinite);
            EXPECT_EQ(r.row, 1);
            EXPECT_EQ(r.ids, (std::vector<int32_t>{2, 1, 0, 1}));
            EXPECT_EQ(r.weights[2], 0.0f);
            EXPECT_EQ(r.weights[3], 0.0f);
        }
}

TEST(Router, GivesAPaddedRowNothing) {
    const Routed r = route({.k = 2, .normalize = true}, {1, 1, NAN, 4}, 2, {}, {0, -1});
    EXPECT_EQ(r.fault, Fault::None);
    EXPECT_EQ(r.ids, (std::vector<int32_t>{0, 1, -1, -1}));
    EXPECT_EQ(r.weights, (std::vector<float>{0.5f, 0.5f, 0, 0}));
}

TEST(Router, HasAFloorUnderTheSumOfWeights) {
    // e^-100 is 0 in this project's exponential: a chosen score of 0 is divided by the floor, not by 0.
    const Routed r = route({.score = Score::Softmax, .k = 1, .normalize = true}, {0, -100}, 1, {-1, 1});
    EXPECT_EQ(r.ids, std::vector<int32_t>{1});
    EXPECT_EQ(r.weights, std::vector<float>{0.0f});
}

}  // namespace
}  // namespace ggmlx::test
