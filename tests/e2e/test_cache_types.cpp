// What rounding the cache costs: every architecture with every type of cache, against the same model with f32 caches.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ggmlx/core/error.h"
#include "support.h"

namespace e2e {
namespace {

using ggmlx::DType;
using Ids = std::vector<llm::TokenId>;

constexpr DType kTypes[] = {DType::F16, DType::BF16, DType::F8_E4M3, DType::Q8_0};

/// The root mean square of the error of a cached value, as a share of the values' own. p bits of mantissa: rounding is
/// uniform within ±2^-p of a value's power of two, which on average over a binade is 1/1.4 of the value. q8_0: uniform
/// within ±amax / 254, and the largest of 32 normal values is 2.1 times their deviation.
double noise(DType dtype) {
    const auto mantissa = [](int p) { return std::exp2(-p) / std::sqrt(3.0) / 1.4; };
    if (dtype == DType::F16) return mantissa(11);
    if (dtype == DType::BF16) return mantissa(8);
    if (dtype == DType::F8_E4M3) return mantissa(4);
    return 2.1 / 254 / std::sqrt(3.0);
}

/// Rows of logits.
struct Rows {
    std::vector<float> values;
    size_t n_vocab;

    size_t size() const { return values.size() / n_vocab; }
    std::span<const float> operator[](size_t i) const { return std::span(values).subspan(i * n_vocab, n_vocab); }
    /// Mean over the rows of the deviation within one.
    double deviation() const {
        double all = 0;
        for (size_t i = 0; i < size(); ++i) {
            double sum = 0, squares = 0;
            for (float v : (*this)[i]) sum += v, squares += static_cast<double>(v) * v;
            const double mean = sum / static_cast<double>(n_vocab);
            all += std::sqrt(squares / static_cast<double>(n_vocab) - mean * mean);
        }
        return all / static_cast<double>(size());
    }
};

std::vector<double> log_softmax(std::span<const float> logits) {
    const double most = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float v : logits) sum += std::exp(v - most);
    std::vector<double> result;
    for (float v : logits) result.push_back(v - most - std::log(sum));
    return result;
}

/// The divergence of each row.
std::vector<double> divergences(const Rows& from, const Rows& to) {
    std::vector<double> rows;
    for (size_t i = 0; i < from.size(); ++i) {
        const auto p = log_softmax(from[i]), q = log_softmax(to[i]);
        rows.push_back(0);
        for (size_t j = 0; j < p.size(); ++j) rows.back() += std::exp(p[j]) * (p[j] - q[j]);
    }
    return rows;
}

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// What the logits of another context cost: those of the row before.
double divergence_of_nonsense(const Rows& exact) {
    Rows turned = exact;
    std::rotate(turned.values.begin(), turned.values.end() - static_cast<std::ptrdiff_t>(exact.n_vocab),
                turned.values.end());
    return mean(divergences(exact, turned));
}

/// For a small error e of the logits the divergence is half the variance of e. Every layer brings noise in twice, by
/// its keys and by its values, and we let all of it add up undamped to an error of the logits' own size: e is at most
/// 2 · n_layer · noise of their deviation.
double divergence_bound(const llm::Model& model, const Rows& exact, double cache_noise) {
    const double e = 2 * static_cast<double>(model.config().n_layer) * cache_noise * exact.deviation();
    return e * e / 2;
}

class CacheRounding : public testing::Test {
  protected:
    TempFolder folder_;

    static Rows logits(const llm::Model& model, std::span<const llm::TokenId> ids, int64_t n, DType k, DType v) {
        llm::EngineOptions options = exact_options();
        options.max_outputs = n;
        options.cache_k = k;
        options.cache_v = v;
        return {prompt_logits(model, options, ids, n), static_cast<size_t>(model.config().n_vocab)};
    }
};

TEST_F(CacheRounding, KeepsTheGreedyStoryAndItsProbabilities) {
    const auto model = llm::Model::open(make_model(folder_, "stories260k"));
    constexpr int64_t kTokens = 64;
    const auto story = [&](DType dtype) {
        llm::EngineOptions options = exact_options();
        options.cache_k = options.cache_v = dtype;
        llm::Engine engine(model, options);
        llm::Session session(engine);
        return greedy(session, Ids{1}, kTokens);
    };
    const Ids want = story(DType::F32);
    Ids ids{1};
    ids.insert(ids.end(), want.begin(), want.end() - 1);
    const Rows exact = logits(model, ids, kTokens, DType::F32, DType::F32);
    for (DType dtype : kTypes) {
        // f8_e4m3 has three bits of mantissa: it may take another word.
        if (dtype != DType::F8_E4M3) {
            EXPECT_EQ(story(dtype), want) << ggmlx::name(dtype);
        }
        const double divergence = mean(divergences(exact, logits(model, ids, kTokens, dtype, dtype)));
        const double bound = divergence_bound(model, exact, noise(dtype));
        EXPECT_LE(divergence, bound) << ggmlx::name(dtype);
        EXPECT_GT(divergence, 0) << ggmlx::name(dtype) << " seems to round nothing";
        RecordProperty(std::string(ggmlx::name(dtype)), fmt::format("{:.3g} of {:.3g}", divergence, bound));
    }
}

class CacheRoundingOf : public CacheRounding, public testing::WithParamInterface<std::string> {};

TEST_P(CacheRoundingOf, StaysBelowItsBoundForEveryType) {
    const auto model = llm::Model::open(make_model(folder_, "fixtures/" + GetParam()));
    const auto ids = reference_ids("fixtures/" + GetParam(), "p33.ids");
    const auto n = static_cast<int64_t>(ids.size());
    const Rows exact = logits(model, ids, n, DType::F32, DType::F32);
    // A router may choose another expert after the smallest change. What that costs is no multiple of the noise, so
    // mixtures are only asked to stay far from nonsense.
    const bool mixture = model.config().mixture.n_expert > 0;
    const double far_from_nonsense = divergence_of_nonsense(exact) / 20;
    for (DType dtype : kTypes) {
        const double bound = mixture ? far_from_nonsense : divergence_bound(model, exact, noise(dtype));
        EXPECT_LE(mean(divergences(exact, logits(model, ids, n, dtype, dtype))), bound) << ggmlx::name(dtype);
    }
    EXPECT_GT(far_from_nonsense, 0.05) << "the logits of this model do not depend on the context";
}

TEST_F(CacheRounding, IsRefusedWhereOneRowWouldNeedTwoTypes) {
    const auto model = llm::Model::open(make_model(folder_, "fixtures/deepseek_v2_lite"));
    llm::EngineOptions options = exact_options();
    options.cache_k = DType::Q8_0;
    options.cache_v = DType::F16;
    try {
        llm::Engine engine(model, options);
        FAIL() << "two types for one row";
    } catch (const ggmlx::Error& e) {
        EXPECT_EQ(e.kind(), ggmlx::ErrorKind::InvalidArgument);
        EXPECT_NE(std::string(e.what()).find("--cache-type-v f16"), std::string::npos) << e.what();
    }
    options.cache_v.reset();
    llm::Engine engine(model, options);
    EXPECT_EQ(engine.blueprint().cache().layout().v, DType::Q8_0);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, CacheRoundingOf,
                         testing::Values("llama", "llama_linear", "mistral", "qwen2", "qwen2_swa", "qwen3",
                                         "qwen3_yarn", "mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "gpt_oss",
                                         "deepseek_v2", "deepseek_v2_lite", "deepseek_v3", "kimi_k2", "glm4_moe",
                                         "minimax_m2"),
                         [](const auto& fixture) { return fixture.param; });

}  // namespace
}  // namespace e2e
