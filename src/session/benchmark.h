#pragma once
// Benchmark: tokens per second of an engine, beside what the memory of its devices allows.

#include <cstdint>
#include <string>
#include <vector>

#include "src/session/engine.h"

namespace llm {

/// One thing to time: n_prompt tokens in batches, then n_gen tokens one by one, after `depth` tokens that are not
/// timed.
struct BenchCase {
    int64_t n_prompt = 0, n_gen = 0, depth = 0;
    int64_t n_tokens() const { return n_prompt + n_gen; }
    /// "pp512", "tg128", "pp512+tg128", with " @ d4096" behind.
    std::string name() const;
};

struct BenchResult {
    BenchCase what;
    std::vector<double> seconds;  ///< one per repetition
    double tokens_per_second = 0, stddev = 0;
    /// Of weights and cache, read for a token on average. 0 where it limits nothing: with a prompt.
    double bytes_per_token = 0;
    double limit_tokens_per_second = 0;  ///< what the rates of the devices allow (least_seconds); 0 likewise
};

/// Random tokens from a fixed seed. One repetition more than asked for runs first and is not counted. Throws
/// invalid_argument if a case does not fit into the context.
/// rates: Engine::read_rates().
BenchResult run_bench(Engine& engine, const BenchCase& what, int64_t repetitions, std::span<const double> rates);

}  // namespace llm
