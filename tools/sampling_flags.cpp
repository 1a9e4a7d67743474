#include "tools/sampling_flags.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "tools/text_input.h"

namespace cli {
namespace {

/// "15043+1.5" or "15043-inf": an id, a sign, a number.
std::pair<llm::TokenId, float> parse_bias(const std::string& text) {
    llm::TokenId id = 0;
    float bias = 0;
    const char* end = text.data() + text.size();
    const auto [sign, id_error] = std::from_chars(text.data(), end, id);
    const bool signed_part = id_error == std::errc() && sign != end && (*sign == '+' || *sign == '-');
    const char* number = signed_part && *sign == '+' ? sign + 1 : sign;
    const auto [last, bias_error] = std::from_chars(number, end, bias);
    if (!signed_part || bias_error != std::errc() || last != end || std::isnan(bias))
        throw UsageError(fmt::format("--logit-bias: \"{}\" is not ID+NUMBER or ID-NUMBER, such as 15043-inf", text));
    return {id, bias};
}

template <class To, class From>
void set(To& to, const std::optional<From>& from) {
    if (from) to = static_cast<To>(*from);
}

}  // namespace

void add_sampling_flags(Args& args, SamplingFlags& flags) {
    args.option("-n,--predict,--n-predict", flags.max_tokens, {-1, INT32_MAX},
                "most tokens to draw; -1: until the end of the answer or of the context (the default)");
    args.option("--temp,--temperature", flags.temperature, {0, 1000},
                "temperature; 0: always the likeliest token (0.8)");
    args.option("--top-k", flags.top_k, {INT32_MIN, INT32_MAX}, "draw from the k likeliest; 0: off (40)");
    args.option("--top-p", flags.top_p, {0, 1},
                "draw from the likeliest with this sum of probabilities; 1: off (0.95)");
    args.option("--min-p", flags.min_p, {0, 1},
                "leave out what is less likely than this times the likeliest; 0: off (0.05)");
    args.option("--repeat-penalty", flags.repeat_penalty, {1e-3, 1000}, "above 1: repeat less; 1: off (1)");
    args.option("--repeat-last-n", flags.repeat_last_n, {-1, INT32_MAX}, "how many tokens penalties see; -1: all (64)");
    args.option("--presence-penalty", flags.presence_penalty, {-1000, 1000},
                "subtracted from the logit of tokens seen (0)");
    args.option("--frequency-penalty", flags.frequency_penalty, {-1000, 1000}, "subtracted for each time seen (0)");
    args.option("-s,--seed", flags.seed, {-1, INT64_MAX}, "seed of the random numbers; -1: a random one (the default)");
    args.option("-l,--logit-bias", flags.logit_bias, "ID±X", "adds to a token's logit; repeatable; -inf bans it");
    args.option("--stop,-r,--reverse-prompt", flags.stops, "TEXT", "end the answer before this text; repeatable");
    args.flag("--ignore-eos", flags.ignore_eos, "go on after end-of-sequence tokens, as if they were like any other");
}

llm::GenerateOptions generate_options(const SamplingFlags& flags, const llm::GenerationConfig& defaults, bool escape) {
    llm::GenerateOptions options;
    llm::SamplingParams& p = options.sampling;
    p = llm::sampling_defaults(defaults);
    set(p.temperature, flags.temperature);
    set(p.top_k, flags.top_k);
    set(p.top_p, flags.top_p);
    set(p.min_p, flags.min_p);
    set(p.repeat_penalty, flags.repeat_penalty);
    set(p.repeat_last_n, flags.repeat_last_n);
    set(p.presence_penalty, flags.presence_penalty);
    set(p.frequency_penalty, flags.frequency_penalty);
    set(p.seed, flags.seed);
    for (const std::string& text : flags.logit_bias) p.logit_bias.push_back(parse_bias(text));
    llm::check(p);
    options.max_tokens = flags.max_tokens;
    options.ignore_eos = flags.ignore_eos;
    for (const std::string& text : flags.stops) options.stops.push_back(escape ? unescape(text) : text);
    return options;
}

}  // namespace cli
