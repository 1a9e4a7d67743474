#include "src/session/generate.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "ggmlx/core/error.h"

namespace llm {

using ggmlx::ErrorKind;
using ggmlx::require;

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Turns ids into text that may be shown: whole characters, and no beginning of a stop string.
class TextOut {
  public:
    /// before: the tokens that the text goes on from. A decoder treats the first token of a text in its own way (drops
    /// its space), and a character may have begun before.
    TextOut(const Model& model, std::span<const TokenId> before, const GenerateOptions& options, const OnText& on_text,
            std::string& text)
        : stops_(options.stops), on_text_(on_text), text_(text) {
        if (!model.has_tokenizer()) return;
        stream_.emplace(model.tokenizer());
        for (TokenId id : before.last(std::min(before.size(), kContextTokens))) stream_->push(id);
    }
    /// False if the caller cancelled.
    bool push(TokenId id) {
        if (!stream_) return emit("");
        const StopStrings::Result r = stops_.push(stream_->push(id));
        stopped_ = r.stopped;
        return emit(r.text);
    }
    bool finish() {
        if (!stream_ || stopped_) return true;
        const StopStrings::Result r = stops_.push(stream_->finish());
        stopped_ = r.stopped;
        return emit(stopped_ ? r.text : r.text + stops_.finish());
    }
    bool stopped() const { return stopped_; }

  private:
    static constexpr size_t kContextTokens = 16;
    std::optional<TokenStream> stream_;
    StopStrings stops_;
    const OnText& on_text_;
    std::string& text_;
    bool stopped_ = false;

    bool emit(std::string_view piece) {
        text_ += piece;
        return !on_text_ || on_text_(piece);
    }
};

/// Evaluates the prompt step by step, so that it can be cancelled in between. Empty logits: cancelled.
Logits evaluate_prompt(Session& session, std::span<const TokenId> prompt, const OnText& on_text) {
    const auto chunk = static_cast<size_t>(session.engine().max_batch());
    while (prompt.size() > chunk) {
        session.engine().eval({&session, prompt.first(chunk), 0});
        prompt = prompt.subspan(chunk);
        if (on_text && !on_text("")) return {};
    }
    return session.engine().eval({&session, prompt, 1});
}

/// Why drawing ends after this token; empty if it goes on.
std::string_view reason_after(const Session& session, const GenerateOptions& options, const Generated& result) {
    const bool limited = options.max_tokens >= 0;
    if (limited && static_cast<int64_t>(result.ids.size()) >= options.max_tokens) return "length";
    if (session.n_free() == 0) return "context";
    return "";
}

/// Draws tokens until there is a reason to stop, which it returns.
std::string draw(Session& session, Logits logits, Sampler& sampler, const GenerateOptions& options, TextOut& out,
                 Generated& result) {
    const Model& model = session.engine().model();
    while (true) {
        const TokenId id = sampler.sample(logits.row(0));
        result.ids.push_back(id);
        if (model.is_eos(id) && !options.ignore_eos) return "eos";
        if (!out.push(id)) return "cancelled";
        if (out.stopped()) return "stop";
        if (const auto reason = reason_after(session, options, result); !reason.empty()) return std::string(reason);
        logits = session.engine().eval({&session, std::span(&result.ids.back(), 1), 1});
    }
}

}  // namespace

Generated generate(Session& session, std::span<const TokenId> prompt, const GenerateOptions& options,
                   const OnText& on_text) {
    require(!prompt.empty(), ErrorKind::InvalidArgument, "the prompt has no tokens");
    require(static_cast<int64_t>(prompt.size()) <= session.n_free(), ErrorKind::InvalidArgument,
            "the prompt has {} tokens, but of the context of {} (-c) only {} are free", prompt.size(),
            session.engine().n_ctx(), session.n_free());
    Generated result;
    result.timings.cache_n = session.length();
    Sampler sampler(options.sampling, session.engine().model().unused_ids());
    sampler.accept(session.ids());
    sampler.accept(prompt);

    const auto start = Clock::now();
    const Logits logits = evaluate_prompt(session, prompt, on_text);
    result.timings.prompt_n = session.length() - result.timings.cache_n;
    result.timings.prompt_ms = ms_since(start);
    if (logits.values.empty() || options.max_tokens == 0) {
        result.stop_reason = logits.values.empty() ? "cancelled" : "length";
        return result;
    }
    const auto first_token = Clock::now();
    TextOut out(session.engine().model(), session.ids(), options, on_text, result.text);
    result.stop_reason = draw(session, logits, sampler, options, out, result);
    out.finish();
    if (out.stopped()) result.stop_reason = "stop";
    result.timings.predicted_n = static_cast<int64_t>(result.ids.size());
    result.timings.predicted_ms = ms_since(first_token);
    return result;
}

SamplingParams sampling_defaults(const GenerationConfig& config) {
    SamplingParams p;
    if (config.temperature) p.temperature = *config.temperature;
    if (config.top_k) p.top_k = *config.top_k;
    if (config.top_p) p.top_p = *config.top_p;
    if (config.min_p) p.min_p = *config.min_p;
    if (config.repetition_penalty) p.repeat_penalty = *config.repetition_penalty;
    return p;
}

}  // namespace llm
