#include "src/session/benchmark.h"

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <random>

#include "ggmlx/core/error.h"
#include "src/session/session.h"
#include "src/session/step_bytes.h"

namespace llm {
namespace {

using BenchClock = std::chrono::steady_clock;

std::vector<TokenId> random_ids(int64_t n, int64_t n_vocab) {
    std::mt19937 random(1);
    std::uniform_int_distribution<TokenId> id(0, static_cast<TokenId>(n_vocab - 1));
    std::vector<TokenId> ids(static_cast<size_t>(n));
    for (TokenId& value : ids) value = id(random);
    return ids;
}

/// Seconds for one repetition.
double time_once(Engine& engine, const BenchCase& what, std::span<const TokenId> ids) {
    Session session(engine);
    if (what.depth > 0) engine.eval({&session, ids.first(static_cast<size_t>(what.depth)), 0});
    ids = ids.subspan(static_cast<size_t>(what.depth));
    const auto start = BenchClock::now();
    if (what.n_prompt > 0) engine.eval({&session, ids.first(static_cast<size_t>(what.n_prompt)), 1});
    for (const TokenId& id : ids.subspan(static_cast<size_t>(what.n_prompt))) engine.eval({&session, {&id, 1}, 1});
    return std::chrono::duration<double>(BenchClock::now() - start).count();
}

void add_limits(const Engine& engine, std::span<const double> rates, BenchResult& result) {
    const BenchCase& what = result.what;
    if (what.n_prompt > 0 || what.n_gen == 0) return;
    const auto graph = engine.blueprint().graph(engine.blueprint().padded(1, 1));
    const int64_t mean_depth = what.depth + (what.n_gen + 1) / 2;
    result.bytes_per_token = static_cast<double>(weight_bytes(*graph) + cache_bytes(*graph, mean_depth));
    const double seconds = least_seconds(*graph, engine.blueprint().placement(), rates, mean_depth);
    if (seconds > 0) result.limit_tokens_per_second = 1 / seconds;
}

}  // namespace

std::string BenchCase::name() const {
    std::string text = n_prompt > 0 ? fmt::format("pp{}", n_prompt) : "";
    if (n_gen > 0) text += fmt::format("{}tg{}", text.empty() ? "" : "+", n_gen);
    return depth > 0 ? fmt::format("{} @ d{}", text, depth) : text;
}

BenchResult run_bench(Engine& engine, const BenchCase& what, int64_t repetitions, std::span<const double> rates) {
    const int64_t n_ids = what.depth + what.n_tokens();
    ggmlx::require(what.n_tokens() > 0, ggmlx::ErrorKind::InvalidArgument, "bench: nothing to time: -p and -n are 0");
    ggmlx::require(n_ids <= engine.n_ctx(), ggmlx::ErrorKind::InvalidArgument,
                   "{} needs a context of {} tokens, it has {} (-c)", what.name(), n_ids, engine.n_ctx());
    const auto ids = random_ids(n_ids, engine.model().config().n_vocab);
    BenchResult result;
    result.what = what;
    add_limits(engine, rates, result);
    time_once(engine, what, ids);  // brings weights and caches in
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < repetitions; ++i) {
        result.seconds.push_back(time_once(engine, what, ids));
        const double rate = static_cast<double>(what.n_tokens()) / result.seconds.back();
        sum += rate;
        squares += rate * rate;
    }
    const auto n = static_cast<double>(repetitions);
    result.tokens_per_second = sum / n;
    if (repetitions > 1) result.stddev = std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)));
    return result;
}

}  // namespace llm
