#include "src/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "ggmlx/core/error.h"

namespace llm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Logits = std::vector<float>;

/// Everything off but the draw itself.
SamplingParams plain(int64_t seed = 1) {
    SamplingParams p;
    p.temperature = 1.0f;
    p.top_k = 0;
    p.top_p = 1.0f;
    p.min_p = 0.0f;
    p.seed = seed;
    return p;
}

SamplingParams greedy() {
    SamplingParams p = plain();
    p.temperature = 0.0f;
    return p;
}

std::map<TokenId, int> counts(SamplingParams params, const Logits& logits, int n, std::vector<TokenId> banned = {}) {
    Sampler sampler(params, std::move(banned));
    std::map<TokenId, int> result;
    for (int i = 0; i < n; ++i) ++result[sampler.sample(logits)];
    return result;
}

/// Logits of given probabilities.
Logits logits_of(const std::vector<double>& probabilities) {
    Logits logits;
    for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
    return logits;
}

/// n draws of an event of probability p lie within 5 standard deviations of n p; the seed is fixed, so it does or does
/// not.
void expect_frequency(int count, int n, double p) {
    const double deviation = std::sqrt(n * p * (1 - p));
    EXPECT_NEAR(count, n * p, 5 * deviation + 1e-9);
}

void expect_frequencies(SamplingParams params, const std::vector<double>& given, const std::vector<double>& expected) {
    constexpr int kDraws = 20000;
    auto result = counts(params, logits_of(given), kDraws);
    for (size_t i = 0; i < expected.size(); ++i) expect_frequency(result[static_cast<TokenId>(i)], kDraws, expected[i]);
}

TEST(Sampler, GreedyTakesTheLowestIdOfEqualOnes) {
    Sampler sampler(greedy());
    EXPECT_EQ(sampler.sample(Logits{1, 3, 2, 3}), 1);
    EXPECT_EQ(sampler.sample(Logits{-kInfinity, -5, -5}), 1);
}

TEST(Sampler, SameSeedSameTokens) {
    const Logits logits = logits_of({0.1, 0.2, 0.3, 0.4});
    Sampler a(plain(42)), b(plain(42)), c(plain(43));
    std::vector<TokenId> from_a, from_b, from_c;
    for (int i = 0; i < 64; ++i) {
        from_a.push_back(a.sample(logits));
        from_b.push_back(b.sample(logits));
        from_c.push_back(c.sample(logits));
    }
    EXPECT_EQ(from_a, from_b);
    EXPECT_NE(from_a, from_c);
    EXPECT_EQ(a.seed(), 42u);
}

TEST(Sampler, DrawsFromTheBitsOfTheStandardGenerator) {
    // The 10000th value of mt19937_64 is fixed by the C++ standard, so the draws are, too.
    std::mt19937_64 generator(5);
    Sampler sampler(plain(5));
    const Logits uniform(1000, 0.0f);
    for (int i = 0; i < 200; ++i) {
        const double u = static_cast<double>(generator() >> 11) * 0x1p-53;
        EXPECT_EQ(sampler.sample(uniform), static_cast<TokenId>(u * 1000));
    }
}

TEST(Sampler, SeedMinusOneDiffers) { EXPECT_NE(Sampler(plain(-1)).seed(), Sampler(plain(-1)).seed()); }

TEST(Sampler, DrawsWithTheModelsProbabilities) {
    expect_frequencies(plain(), {0.5, 0.25, 0.15, 0.1}, {0.5, 0.25, 0.15, 0.1});
}

TEST(Sampler, TemperatureFlattensAndSharpens) {
    SamplingParams p = plain();
    p.temperature = 0.5f;  // p^2, normalized
    const double total = 0.25 + 0.0625 + 0.0625;
    expect_frequencies(p, {0.5, 0.25, 0.25}, {0.25 / total, 0.0625 / total, 0.0625 / total});
}

TEST(Sampler, TopKKeepsTheLowestIdsOfEqualOnes) {
    SamplingParams p = plain();
    p.top_k = 2;
    expect_frequencies(p, {0.2, 0.4, 0.2, 0.2}, {1.0 / 3, 2.0 / 3, 0, 0});
    p.top_k = 1;
    expect_frequencies(p, {0.2, 0.4, 0.2, 0.2}, {0, 1, 0, 0});
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
    SamplingParams p = plain();
    p.top_p = 0.7f;
    expect_frequencies(p, {0.1, 0.5, 0.15, 0.25}, {0, 2.0 / 3, 0, 1.0 / 3});
    p.top_p = 0.0f;
    expect_frequencies(p, {0.1, 0.5, 0.15, 0.25}, {0, 1, 0, 0});
}

TEST(Sampler, MinPKeepsWhatIsNearTheLargest) {
    SamplingParams p = plain();
    p.min_p = 0.4f;
    expect_frequencies(p, {0.1, 0.5, 0.15, 0.25}, {0, 2.0 / 3, 0, 1.0 / 3});
}

TEST(Sampler, TopPAndMinPDoNotSeeTheTemperature) {
    SamplingParams p = plain();
    p.temperature = 100.0f;
    p.top_p = 0.7f;
    const auto result = counts(p, logits_of({0.1, 0.5, 0.15, 0.25}), 1000);
    EXPECT_EQ(result.size(), 2u);
    p.top_p = 1.0f;
    p.min_p = 0.4f;
    EXPECT_EQ(counts(p, logits_of({0.1, 0.5, 0.15, 0.25}), 1000).size(), 2u);
}

TEST(Sampler, TopPOfManyTokensIsThatOfAFullSort) {
    std::mt19937_64 random(11);
    Logits logits(20000);
    for (float& l : logits) l = static_cast<float>(random() % 1000) / 500.0f;
    std::vector<double> sorted(logits.begin(), logits.end());
    std::sort(sorted.rbegin(), sorted.rend());
    double total = 0, sum = 0;
    for (const double l : sorted) total += std::exp(l);
    double least = 0;
    for (const double l : sorted) {
        least = l;
        if ((sum += std::exp(l)) >= 0.5 * total) break;
    }
    SamplingParams p = plain();
    p.top_p = 0.5f;
    for (const auto& [id, n] : counts(p, logits, 300)) EXPECT_GE(logits[static_cast<size_t>(id)], least);
}

TEST(Sampler, BannedTokensAreNeverDrawn) {
    // Ids 10 and 11 are rows of the embedding without a token; their logits are the largest.
    Logits logits(12, 0.0f);
    logits[10] = 100;
    logits[11] = 1000;
    for (SamplingParams p : {plain(), greedy()}) {
        p.logit_bias = {{11, 50.0f}};
        const auto result = counts(p, logits, 500, {10, 11, 999});
        EXPECT_EQ(result.count(10) + result.count(11), 0u);
        EXPECT_GE(result.size(), 1u);
    }
}

TEST(Sampler, LogitBiasIsAdded) {
    SamplingParams p = greedy();
    p.logit_bias = {{0, 2.0f}, {1, -kInfinity}};
    EXPECT_EQ(Sampler(p).sample(Logits{0, 9, 1}), 0);
    p.logit_bias = {{3, 1.0f}};
    EXPECT_THROW(Sampler(p).sample(Logits{0, 9, 1}), ggmlx::Error);
}

TEST(Sampler, RepeatPenaltyDividesPositiveAndMultipliesNegativeLogits) {
    SamplingParams p = greedy();
    p.repeat_penalty = 2.0f;
    Sampler sampler(p);
    sampler.accept(std::vector<TokenId>{0, 0});
    EXPECT_EQ(sampler.sample(Logits{4.0f, 1.9f, 2.1f}), 2);  // 4 -> 2, however often it was seen
    Sampler other(p);
    other.accept(std::vector<TokenId>{0});
    EXPECT_EQ(other.sample(Logits{-1.0f, -1.9f, -2.1f}), 1);  // -1 -> -2
}

TEST(Sampler, PresenceCountsOnceFrequencyEveryTime) {
    SamplingParams p = greedy();
    p.presence_penalty = 1.0f;
    Sampler presence(p);
    presence.accept(std::vector<TokenId>{0, 0, 0});
    EXPECT_EQ(presence.sample(Logits{3.0f, 1.9f, 0}), 0);  // 3 - 1
    p.presence_penalty = 0.0f;
    p.frequency_penalty = 1.0f;
    Sampler frequency(p);
    frequency.accept(std::vector<TokenId>{0, 0, 0});
    EXPECT_EQ(frequency.sample(Logits{3.0f, 1.9f, 0}), 1);  // 3 - 3
}

TEST(Sampler, PenaltiesSeeTheLastTokensOnly) {
    SamplingParams p = greedy();
    p.frequency_penalty = 10.0f;
    p.repeat_last_n = 2;
    const Logits logits{5, 4, 3, 2};
    Sampler two(p);
    EXPECT_EQ(two.sample(logits), 0);
    EXPECT_EQ(two.sample(logits), 1);
    EXPECT_EQ(two.sample(logits), 2);
    EXPECT_EQ(two.sample(logits), 0);  // the first 0 is out of sight
    p.repeat_last_n = -1;
    Sampler all(p);
    for (const TokenId expected : {0, 1, 2, 3, 0}) EXPECT_EQ(all.sample(logits), expected);
    p.repeat_last_n = 0;
    Sampler none(p);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(none.sample(logits), 0);
}

TEST(Sampler, BrokenLogitsAreErrors) {
    for (SamplingParams p : {plain(), greedy()}) {
        EXPECT_THROW(Sampler(p).sample(Logits{0, std::nanf(""), 1}), ggmlx::Error);
        EXPECT_THROW(Sampler(p).sample(Logits{0, kInfinity, 1}), ggmlx::Error);
        EXPECT_THROW(Sampler(p).sample(Logits{-kInfinity, -kInfinity}), ggmlx::Error);
        EXPECT_THROW(Sampler(p).sample(Logits{}), ggmlx::Error);
        EXPECT_THROW(Sampler(p, {0, 1}).sample(Logits{1, 2}), ggmlx::Error);
        EXPECT_EQ(Sampler(p).sample(Logits{-kInfinity, 0, -kInfinity}), 1);
    }
    try {
        Sampler(plain()).sample(Logits{0, std::nanf("")});
    } catch (const ggmlx::Error& e) {
        EXPECT_EQ(e.kind(), ggmlx::ErrorKind::Device);
        EXPECT_NE(std::string(e.what()).find("token 1"), std::string::npos);
    }
}

TEST(Sampler, ImpossibleParametersAreNamed) {
    const float nan = std::nanf("");
    const auto expect_named = [](const std::string& flag, void (*change)(SamplingParams&, float), float value) {
        SamplingParams p = plain();
        change(p, value);
        try {
            check(p);
            ADD_FAILURE() << flag << " " << value << " was accepted";
        } catch (const ggmlx::Error& e) {
            EXPECT_EQ(e.kind(), ggmlx::ErrorKind::InvalidArgument);
            EXPECT_NE(std::string(e.what()).find(flag), std::string::npos) << e.what();
        }
    };
    const auto temperature = [](SamplingParams& p, float v) { p.temperature = v; };
    const auto top_p = [](SamplingParams& p, float v) { p.top_p = v; };
    const auto min_p = [](SamplingParams& p, float v) { p.min_p = v; };
    const auto repeat = [](SamplingParams& p, float v) { p.repeat_penalty = v; };
    const auto last_n = [](SamplingParams& p, float v) { p.repeat_last_n = static_cast<int32_t>(v); };
    const auto presence = [](SamplingParams& p, float v) { p.presence_penalty = v; };
    const auto frequency = [](SamplingParams& p, float v) { p.frequency_penalty = v; };
    const auto seed = [](SamplingParams& p, float v) { p.seed = static_cast<int64_t>(v); };
    const auto bias = [](SamplingParams& p, float v) { p.logit_bias = {{0, v}}; };
    expect_named("--temp", temperature, nan);
    expect_named("--temp", temperature, kInfinity);
    expect_named("--top-p", top_p, nan);
    expect_named("--top-p", top_p, -0.1f);
    expect_named("--min-p", min_p, nan);
    expect_named("--min-p", min_p, 1.1f);
    expect_named("--repeat-penalty", repeat, 0.0f);
    expect_named("--repeat-penalty", repeat, nan);
    expect_named("--repeat-last-n", last_n, -2.0f);
    expect_named("--presence-penalty", presence, kInfinity);
    expect_named("--frequency-penalty", frequency, nan);
    expect_named("--seed", seed, -2.0f);
    expect_named("--logit-bias", bias, nan);
    expect_named("--logit-bias", bias, kInfinity);
    check(SamplingParams{});
}

}  // namespace
}  // namespace llm
