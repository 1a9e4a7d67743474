#pragma once
// Flags of commands that draw tokens.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/session/generate.h"
#include "tools/args.h"

namespace cli {

struct SamplingFlags {
    int64_t max_tokens = -1;
    std::optional<double> temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
    std::optional<int64_t> top_k, repeat_last_n, seed;
    std::vector<std::string> logit_bias, stops;
    bool ignore_eos = false;
};
void add_sampling_flags(Args& args, SamplingFlags& flags);
/// The model's defaults, changed by the flags. escape: stop texts are written with C escapes. Throws UsageError for a
/// bad --logit-bias, invalid_argument for values that make no sense.
llm::GenerateOptions generate_options(const SamplingFlags& flags, const llm::GenerationConfig& defaults, bool escape);

}  // namespace cli
