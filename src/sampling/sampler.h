#pragma once
// Sampler: logits of one position -> the next token. Small steps in a fixed order: bias and bans, penalties, then
// temperature 0 takes the largest (lowest id on a tie), else top-k, top-p, min-p, temperature, draw. So top-p and min-p
// see the model's own distribution, not one flattened by the temperature.

#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/tokenizer/tokenizer.h"

namespace llm {

struct SamplingParams {
    float temperature = 0.8f;        ///< <= 0: greedy
    int32_t top_k = 40;              ///< <= 0: off
    float top_p = 0.95f;             ///< >= 1: off
    float min_p = 0.05f;             ///< <= 0: off
    float repeat_penalty = 1.0f;     ///< divides a seen token's logit if it is positive, else multiplies it
    int32_t repeat_last_n = 64;      ///< how many of the last tokens the three penalties see; -1: all
    float presence_penalty = 0.0f;   ///< is subtracted once from the logit of a seen token
    float frequency_penalty = 0.0f;  ///< is subtracted as often as the token was seen
    int64_t seed = -1;               ///< -1: a random one
    std::vector<std::pair<TokenId, float>> logit_bias;  ///< is added; -infinity bans
};

/// Throws invalid_argument, naming the flag and its range, for values that make no sense (NaN, top_p < 0 …).
void check(const SamplingParams& params);

/// One conversation's sampler; owned and used by one thread. The same seed, parameters and logits give the same tokens
/// on every machine whose std::exp gives the same values.
class Sampler {
  public:
    /// banned: ids that are never drawn, whatever their logit (rows of the embedding without a token; EOS with
    /// --ignore-eos). Throws as check().
    explicit Sampler(SamplingParams params, std::vector<TokenId> banned = {});
    /// Chooses the next token from [n_vocab] logits and remembers it. Throws device error if a logit is NaN or
    /// +infinity or all tokens are banned or -infinity, invalid_argument if a logit bias names a token that there is
    /// not.
    TokenId sample(std::span<const float> logits);
    /// Tells the sampler about tokens it did not draw (the prompt), for the penalties.
    void accept(std::span<const TokenId> ids);
    uint64_t seed() const { return seed_; }

  private:
    TokenId choose(std::span<const float> logits);
    void remember(TokenId id);
    void apply_penalties(std::vector<float>& logits) const;
    double random_unit();

    SamplingParams params_;
    std::vector<TokenId> banned_;
    std::deque<TokenId> window_;                   ///< the last repeat_last_n tokens; unused where all count
    std::unordered_map<TokenId, int32_t> counts_;  ///< how often a token is among them
    std::mt19937_64 random_;
    uint64_t seed_ = 0;
};

/// Finds stop strings in streamed text and holds back only what may still become one. Where the text is cut into pieces
/// makes no difference.
class StopStrings {
  public:
    /// Throws invalid_argument for an empty stop string.
    explicit StopStrings(std::vector<std::string> stops);
    struct Result {
        std::string text;  ///< safe to show
        bool stopped = false;
    };
    /// Adds a piece. When a stop string is complete, text ends before it and stopped is set; text that comes later is
    /// dropped. The stop string that is complete first wins; of two that end together, the longer one.
    Result push(std::string_view piece);
    /// The text still held back, when generation ends for another reason.
    std::string finish();

  private:
    std::vector<std::string> stops_;
    std::string held_;
    bool stopped_ = false;
};

}  // namespace llm
