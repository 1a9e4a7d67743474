#include "convert/tokenizer/tiktoken.h"

#include <charconv>

#include "ggmlx/core/base64.h"
#include "ggmlx/core/error.h"
#include "src/tokenizer/utf8.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;

std::optional<RankedTokens::Token> parse_line(std::string_view line) {
    const size_t space = line.find(' ');
    if (space == line.npos) return std::nullopt;
    auto bytes = ggmlx::from_base64(line.substr(0, space));
    int64_t rank = -1;
    const char* end = line.data() + line.size();
    const auto [stop, error] = std::from_chars(line.data() + space + 1, end, rank);
    if (!bytes || error != std::errc() || stop != end || rank < 0) return std::nullopt;
    return RankedTokens::Token{std::move(*bytes), rank};
}

/// Takes the first line off a text.
std::string_view take_line(std::string_view& text) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

struct KnownEncoding {
    std::string_view name, pattern;
    std::vector<std::pair<int64_t, const char*>> special;
};

// Source: https://github.com/openai/tiktoken, tiktoken_ext/openai_public.py (possessive quantifiers left out: they
// change the speed, not the matches).
const KnownEncoding kKnownEncodings[] = {
    {"o200k_base",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {{199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}}},
};

/// Python source from a place on, as far as raw strings go.
class PythonText {
  public:
    explicit PythonText(std::string_view text) : rest_(text) {}

    void skip_blanks() {
        for (;;) {
            rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
            if (!rest_.starts_with('#')) return;
            rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
        }
    }
    bool take(std::string_view token) {
        skip_blanks();
        if (!rest_.starts_with(token)) return false;
        rest_.remove_prefix(token.size());
        return true;
    }
    /// r"…", r'…', r"""…""" or r'''…'''.
    std::optional<std::string> raw_string() {
        if (!take("r")) return std::nullopt;
        for (const std::string_view quote : {R"(""")", "'''", "\"", "'"}) {
            if (!rest_.starts_with(quote)) continue;
            size_t end = quote.size();
            while (end < rest_.size() && !rest_.substr(end).starts_with(quote)) end += rest_[end] == '\\' ? 2 : 1;
            if (end >= rest_.size()) return std::nullopt;
            std::string text(rest_.substr(quote.size(), end - quote.size()));
            rest_.remove_prefix(end + quote.size());
            return text;
        }
        return std::nullopt;
    }

  private:
    std::string_view rest_;
};

/// r"""…""", …]), after the opening brackets, with bars between.
std::optional<std::string> joined_alternatives(PythonText text) {
    std::string pattern;
    bool closed = false;
    while (!closed) {
        const auto part = text.raw_string();
        if (!part) return std::nullopt;
        pattern += (pattern.empty() ? "" : "|") + *part;
        const bool comma = text.take(",");
        closed = text.take("]");
        if (!comma && !closed) return std::nullopt;
    }
    return text.take(")") ? std::optional(pattern) : std::nullopt;
}

}  // namespace

bool is_tiktoken(std::string_view text) { return parse_line(take_line(text)).has_value(); }

RankedTokens read_tiktoken(std::string_view text) {
    RankedTokens model;
    for (size_t number = 1; !text.empty(); ++number) {
        const std::string_view line = take_line(text);
        if (line.empty()) continue;
        auto token = parse_line(line);
        require(token.has_value(), ErrorKind::CorruptFile,
                "tiktoken file: line {} is not a token in base64 and its rank", number);
        model.tokens.push_back(std::move(*token));
    }
    return model;
}

bool apply_known_encoding(std::string_view file_name, RankedTokens& model) {
    for (const KnownEncoding& known : kKnownEncodings) {
        if (file_name != std::string(known.name) + ".tiktoken") continue;
        model.pattern = known.pattern;
        for (const auto& [id, content] : known.special) model.added.push_back({id, content, true});
        return true;
    }
    return false;
}

std::optional<std::string> pattern_of_module(std::string_view python) {
    constexpr std::string_view kName = "pat_str";
    if (!llm::is_valid_utf8(python)) return std::nullopt;
    for (size_t at = python.find(kName); at != python.npos; at = python.find(kName, at + 1)) {
        PythonText text(python.substr(at + kName.size()));
        if (!text.take("=")) continue;
        PythonText joined = text;
        if (joined.take("\"|\"") && joined.take(".join(") && joined.take("[")) return joined_alternatives(joined);
        return text.raw_string();
    }
    return std::nullopt;
}

}  // namespace convert
