#pragma once
// Sampler: logits of one position -> the next token. Small steps in a fixed order: bias and bans, penalties, then
// temperature 0 takes the largest (lowest id on a tie), else top-k, top-p, min-p, temperature, draw.

#include <cstdint>
#include <random>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/tokenizer/tokenizer.h"

namespace llm {

struct SamplingParams {
    float temperature = 0.8f;  ///< <= 0: greedy
    int32_t top_k = 40;        ///< <= 0: off
    float top_p = 0.95f;       ///< >= 1: off
    float min_p = 0.05f;       ///< <= 0: off
    float repeat_penalty = 1.0f;
    int32_t repeat_last_n = 64;  ///< how many of the last tokens the three penalties see; -1: all
    float presence_penalty = 0.0f;
    float frequency_penalty = 0.0f;
    int64_t seed = -1;  ///< -1: a random one
    std::vector<std::pair<TokenId, float>> logit_bias;
};

/// Throws invalid_argument, naming the flag and its range, for values that make no sense (NaN, top_p < 0 …).
void check(const SamplingParams& params);

/// One conversation's sampler; owned and used by one thread.
class Sampler {
  public:
    /// banned: ids that are never drawn, whatever their logit (rows of the embedding without a token; EOS with
    /// --ignore-eos).
    Sampler(SamplingParams params, std::vector<TokenId> banned = {});
    /// Chooses the next token from [n_vocab] logits and remembers it. Throws device error if a logit is NaN or all are
    /// banned.
    TokenId sample(std::span<const float> logits);
    /// Tells the sampler about tokens it did not draw (the prompt), for the penalties.
    void accept(std::span<const TokenId> ids);
    uint64_t seed() const { return seed_; }

  private:
    SamplingParams params_;
    std::vector<TokenId> banned_;
    std::vector<TokenId> history_;
    std::mt19937_64 random_;
    uint64_t seed_ = 0;
};

/// Finds stop strings in streamed text and holds back only what may still become one.
class StopStrings {
  public:
    explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}
    struct Result {
        std::string text;  ///< safe to show
        bool stopped = false;
    };
    /// Adds a piece. When a stop string is complete, text ends before it (the earliest match wins) and stopped is set.
    Result push(std::string_view piece);
    /// The text still held back, when generation ends for another reason.
    std::string finish();

  private:
    std::vector<std::string> stops_;
    std::string held_;
};

}  // namespace llm
