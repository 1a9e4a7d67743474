#include "tools/json_text.h"

#include <fmt/core.h>

namespace cli {
namespace {

double per_second(int64_t n, double ms) { return ms > 0 ? 1000.0 * static_cast<double>(n) / ms : 0.0; }
double per_token(int64_t n, double ms) { return n > 0 ? ms / static_cast<double>(n) : 0.0; }

}  // namespace

std::string json_line(const nlohmann::ordered_json& value) {
    return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

nlohmann::ordered_json to_json(const llm::Timings& t) {
    return {{"cache_n", t.cache_n},
            {"prompt_n", t.prompt_n},
            {"prompt_ms", t.prompt_ms},
            {"prompt_per_token_ms", per_token(t.prompt_n, t.prompt_ms)},
            {"prompt_per_second", per_second(t.prompt_n, t.prompt_ms)},
            {"predicted_n", t.predicted_n},
            {"predicted_ms", t.predicted_ms},
            {"predicted_per_token_ms", per_token(t.predicted_n, t.predicted_ms)},
            {"predicted_per_second", per_second(t.predicted_n, t.predicted_ms)}};
}

std::string timing_line(const llm::Timings& t) {
    return fmt::format("prompt: {} tokens in {:.0f} ms ({:.1f}/s); answer: {} tokens in {:.0f} ms ({:.1f}/s)",
                       t.prompt_n, t.prompt_ms, per_second(t.prompt_n, t.prompt_ms), t.predicted_n, t.predicted_ms,
                       per_second(t.predicted_n, t.predicted_ms));
}

}  // namespace cli
