#include "ggmlx/core/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "ggmlx/core/error.h"

namespace ggmlx {
namespace {

constexpr uint32_t kMatchLimit = 50'000;  // steps of one search: well below 10 ms
constexpr uint32_t kHeapLimitKiB = 16'384;

std::string message_of(int code) {
    PCRE2_UCHAR text[256];
    pcre2_get_error_message(code, text, sizeof text);
    return reinterpret_cast<const char*>(text);
}

struct MatchContext {
    pcre2_match_context* context = pcre2_match_context_create(nullptr);
    MatchContext() {
        pcre2_set_match_limit(context, kMatchLimit);
        pcre2_set_heap_limit(context, kHeapLimitKiB);
    }
    ~MatchContext() { pcre2_match_context_free(context); }
    MatchContext(const MatchContext&) = delete;
    MatchContext& operator=(const MatchContext&) = delete;
};

}  // namespace

Regex::Regex(std::string pattern) : pattern_(std::move(pattern)) {
    int error = 0;
    PCRE2_SIZE position = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern_.data()), pattern_.size(),
                                     PCRE2_NEVER_BACKSLASH_C, &error, &position, nullptr);
    require(code != nullptr, ErrorKind::InvalidArgument, "bad regular expression '{}' at position {}: {}", pattern_,
            position, message_of(error));
    code_ = {code, [](const void* p) { pcre2_code_free(const_cast<pcre2_code*>(static_cast<const pcre2_code*>(p))); }};
}

bool Regex::search(std::string_view text) const {
    static const MatchContext limits;
    const auto* code = static_cast<const pcre2_code*>(code_.get());
    std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(pcre2_match_data_create(1, nullptr),
                                                                              &pcre2_match_data_free);
    int result =
        pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, match.get(), limits.context);
    require(result >= 0 || result == PCRE2_ERROR_NOMATCH, ErrorKind::InvalidArgument,
            "the regular expression '{}' takes too long on '{}{}': {}; write it without nested repetition", pattern_,
            text.substr(0, 60), text.size() > 60 ? "…" : "", message_of(result));
    return result >= 0;
}

}  // namespace ggmlx
