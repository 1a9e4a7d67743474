#pragma once
// Generation: a prompt in, tokens and text out as a stream, until a reason to stop.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/sampling/sampler.h"
#include "src/session/session.h"

namespace llm {

struct GenerateOptions {
    SamplingParams sampling;
    int64_t max_tokens = -1;         ///< -1: until another reason stops it
    std::vector<std::string> stops;  ///< texts that end the answer; they are not part of it
    bool ignore_eos = false;         ///< end-of-sequence tokens are tokens like any other: drawn, and no end
};

/// How long it took, as /v1 responses and --json report it.
struct Timings {
    int64_t cache_n = 0;      ///< tokens that were in the session before
    int64_t prompt_n = 0;     ///< prompt tokens evaluated
    double prompt_ms = 0;     ///< until the first token was drawn
    int64_t predicted_n = 0;  ///< tokens drawn
    double predicted_ms = 0;  ///< from the first token drawn to the last
};

struct Generated {
    std::vector<TokenId> ids;  ///< all tokens drawn; with stop_reason "eos" the last one is the end-of-sequence token
    std::string text;          ///< what went to on_text; empty if the model has no tokenizer
    /// "eos", "stop" (a stop string), "length" (max_tokens), "context" (it is full) or "cancelled".
    std::string stop_reason;
    Timings timings;
};

/// Called after every piece of work (a chunk of the prompt, a token) with the text that became certain, often empty;
/// returns false to cancel.
using OnText = std::function<bool(std::string_view text)>;

/// Appends the prompt to the session and draws tokens. The last token drawn is in the session only if another one was
/// drawn after it. Throws invalid_argument if the prompt is empty or does not fit into the context (with numbers), and
/// what Engine::eval throws.
Generated generate(Session& session, std::span<const TokenId> prompt, const GenerateOptions& options,
                   const OnText& on_text);

/// The defaults of SamplingParams, changed by what the model's generation_config.json says.
SamplingParams sampling_defaults(const GenerationConfig& config);

}  // namespace llm
