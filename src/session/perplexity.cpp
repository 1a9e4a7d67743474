#include "src/session/perplexity.h"

#include <algorithm>
#include <cmath>

#include "ggmlx/core/error.h"

namespace llm {

namespace {

/// -log softmax(logits)[target]
double nll(std::span<const float> logits, TokenId target) {
    const double top = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float x : logits) sum += std::exp(static_cast<double>(x) - top);
    return top + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(target)]);
}

/// Mean and variance of a stream of numbers. Source: Welford 1962.
struct Moments {
    int64_t n = 0;
    double mean = 0, sum_of_squares = 0;
    void add(double x) {
        const double delta = x - mean;
        mean += delta / static_cast<double>(++n);
        sum_of_squares += delta * (x - mean);
    }
    double standard_error() const {
        if (n < 2) return 0;
        return std::sqrt(sum_of_squares / static_cast<double>(n - 1) / static_cast<double>(n));
    }
};

void score_window(Session& session, std::span<const TokenId> inputs, std::span<const TokenId> targets, Moments& out) {
    Engine& engine = session.engine();
    const auto chunk = static_cast<size_t>(engine.blueprint().largest().n_outputs);
    session.truncate(0);
    for (size_t i = 0; i < inputs.size(); i += chunk) {
        const auto part = inputs.subspan(i, std::min(chunk, inputs.size() - i));
        const Logits logits = engine.eval({&session, part, static_cast<int64_t>(part.size())});
        for (size_t t = 0; t < part.size(); ++t) out.add(nll(logits.row(static_cast<int64_t>(t)), targets[i + t]));
    }
}

}  // namespace

Perplexity perplexity(Engine& engine, std::span<const TokenId> ids, const PerplexityOptions& options,
                      const std::function<void(int64_t, int64_t)>& on_window) {
    const auto n = static_cast<size_t>(options.window);
    const size_t n_following = options.bos ? 0 : 1;  // tokens behind a window that it needs as targets
    const size_t n_windows = ids.size() < n + n_following ? 0 : (ids.size() - n_following) / n;
    ggmlx::require(n >= 1 && n_windows >= 1, ggmlx::ErrorKind::InvalidArgument,
                   "the text has {} tokens, but one window of {} needs {}; give a longer text or a smaller -c",
                   ids.size(), n, n + n_following);
    Session session(engine);
    Moments moments;
    for (size_t w = 0; w < n_windows; ++w) {
        std::vector<TokenId> inputs;
        if (options.bos) inputs.push_back(*options.bos);
        const auto window = ids.subspan(w * n, n - inputs.size());
        inputs.insert(inputs.end(), window.begin(), window.end());
        score_window(session, inputs, ids.subspan(w * n + n_following, n), moments);
        if (on_window) on_window(static_cast<int64_t>(w + 1), static_cast<int64_t>(n_windows));
    }
    return {moments.mean, std::exp(moments.mean), moments.standard_error(), moments.n, static_cast<int64_t>(n_windows)};
}

}  // namespace llm
