#include "src/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "ggmlx/core/error.h"
#include "src/sampling/candidates.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

uint64_t random_seed() {
    std::random_device device;
    return (uint64_t{device()} << 32) | device();
}

void check_finite(float value, std::string_view flag) {
    require(std::isfinite(value), ErrorKind::InvalidArgument, "{} {}: must be a finite number", flag, value);
}

void check_logits(std::span<const float> logits) {
    for (size_t i = 0; i < logits.size(); ++i)
        require(logits[i] < kInfinity, ErrorKind::Device,  // false for NaN, too
                "the model gave {} as the logit of token {}: its computation went wrong", logits[i], i);
}

}  // namespace

void check(const SamplingParams& p) {
    check_finite(p.temperature, "--temp");
    require(p.top_p >= 0.0f, ErrorKind::InvalidArgument, "--top-p {}: must be 0 or more (1 and more: off)", p.top_p);
    require(p.min_p <= 1.0f, ErrorKind::InvalidArgument, "--min-p {}: must be at most 1 (0 and less: off)", p.min_p);
    require(p.repeat_penalty > 0.0f && p.repeat_penalty < kInfinity, ErrorKind::InvalidArgument,
            "--repeat-penalty {}: must be above 0 (1: off)", p.repeat_penalty);
    require(p.repeat_last_n >= -1, ErrorKind::InvalidArgument,
            "--repeat-last-n {}: must be a number of tokens, or -1 for all", p.repeat_last_n);
    check_finite(p.presence_penalty, "--presence-penalty");
    check_finite(p.frequency_penalty, "--frequency-penalty");
    require(p.seed >= -1, ErrorKind::InvalidArgument, "--seed {}: must be 0 or more, or -1 for a random one", p.seed);
    for (const auto& bias : p.logit_bias)
        require(bias.first >= 0 && bias.second < kInfinity, ErrorKind::InvalidArgument,
                "--logit-bias {} {}: needs a token id and a finite number or -inf", bias.first, bias.second);
}

Sampler::Sampler(SamplingParams params, std::vector<TokenId> banned)
    : params_(std::move(params)), banned_(std::move(banned)) {
    check(params_);
    seed_ = params_.seed < 0 ? random_seed() : static_cast<uint64_t>(params_.seed);
    random_.seed(seed_);
}

TokenId Sampler::sample(std::span<const float> given) {
    check_logits(given);
    std::vector<float> logits(given.begin(), given.end());
    for (const auto& bias : params_.logit_bias) {
        require(static_cast<size_t>(bias.first) < logits.size(), ErrorKind::InvalidArgument,
                "--logit-bias {}: the model has {} tokens", bias.first, logits.size());
        logits[static_cast<size_t>(bias.first)] += bias.second;
    }
    apply_penalties(logits);
    for (const TokenId id : banned_)
        if (id >= 0 && static_cast<size_t>(id) < logits.size()) logits[static_cast<size_t>(id)] = -kInfinity;

    const TokenId chosen = choose(logits);
    remember(chosen);
    return chosen;
}

TokenId Sampler::choose(std::span<const float> logits) {
    const auto largest = std::max_element(logits.begin(), logits.end());  // the first of equal ones
    require(largest != logits.end() && *largest > -kInfinity, ErrorKind::Device,
            "no token can be drawn: all {} are banned or have the logit -infinity", logits.size());
    if (params_.temperature <= 0.0f) return static_cast<TokenId>(largest - logits.begin());
    Candidates candidates(logits);
    if (params_.top_k > 0) candidates.keep_top_k(static_cast<size_t>(params_.top_k));
    if (params_.top_p < 1.0f) candidates.keep_top_p(params_.top_p);
    if (params_.min_p > 0.0f) candidates.keep_min_p(params_.min_p);
    return candidates.draw(params_.temperature, random_unit());
}

void Sampler::accept(std::span<const TokenId> ids) {
    for (const TokenId id : ids) remember(id);
}

void Sampler::remember(TokenId id) {
    ++counts_[id];
    if (params_.repeat_last_n < 0) return;
    window_.push_back(id);
    if (window_.size() <= static_cast<size_t>(params_.repeat_last_n)) return;
    const auto oldest = counts_.find(window_.front());
    if (--oldest->second == 0) counts_.erase(oldest);
    window_.pop_front();
}

void Sampler::apply_penalties(std::vector<float>& logits) const {
    for (const auto& seen : counts_) {
        if (seen.first < 0 || static_cast<size_t>(seen.first) >= logits.size()) continue;
        float& logit = logits[static_cast<size_t>(seen.first)];
        logit = logit > 0.0f ? logit / params_.repeat_penalty : logit * params_.repeat_penalty;
        logit -= params_.presence_penalty + params_.frequency_penalty * static_cast<float>(seen.second);
    }
}

double Sampler::random_unit() {
    return static_cast<double>(random_() >> 11) * 0x1p-53;  // 53 bits: every such number is a double below 1
}

}  // namespace llm
