#include "src/tokenizer/oniguruma.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <vector>

#include "ggmlx/core/error.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

constexpr std::string_view kSpace = "\\t-\\r\\x{85}\\p{Z}";  // members of \s
constexpr std::string_view kHexDigit = "0-9A-Fa-f";          // members of \h

// Names that mean the same general category in both engines.
constexpr auto kCategories = std::to_array<std::string_view>(
    {"L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",  "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Pe",
     "Pf", "Pi", "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs", "C",  "Cc", "Cf", "Cn", "Co"});

constexpr auto kScripts = std::to_array<std::string_view>(
    {"Arabic",    "Armenian", "Bengali",  "Bopomofo", "Cyrillic", "Devanagari", "Ethiopic",
     "Georgian",  "Greek",    "Gujarati", "Gurmukhi", "Han",      "Hangul",     "Hebrew",
     "Hiragana",  "Kannada",  "Katakana", "Khmer",    "Lao",      "Latin",      "Malayalam",
     "Mongolian", "Myanmar",  "Sinhala",  "Tamil",    "Telugu",   "Thai",       "Tibetan"});

// Escapes of single characters that both engines read alike.
constexpr std::string_view kPlainLetters = "aefnrt";

template <class List>
bool contains(const List& list, std::string_view name) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

class Rewriter {
  public:
    explicit Rewriter(std::string_view pattern) : pattern_(pattern) {}

    std::string run() {
        while (!done()) item();
        return std::move(out_);
    }

  private:
    [[noreturn]] void unsupported(std::string_view construct) const {
        fail(ErrorKind::Unsupported, "tokenizer.json: '{}' in the regular expression '{}' is not supported", construct,
             pattern_);
    }
    [[noreturn]] void corrupt(std::string_view what) const {
        fail(ErrorKind::CorruptFile, "tokenizer.json: {} in the regular expression '{}'", what, pattern_);
    }
    bool done() const { return at_ == pattern_.size(); }
    bool next_is(std::string_view s) const { return pattern_.substr(at_).starts_with(s); }
    bool take(std::string_view s) {
        if (!next_is(s)) return false;
        at_ += s.size();
        return true;
    }
    char take() {
        if (done()) corrupt("an unfinished construct");
        return pattern_[at_++];
    }

    /// One construct outside a class.
    void item() {
        const char c = pattern_[at_];
        if (c == '*' || c == '+' || c == '?' || (c == '{' && interval_size() > 0)) return quantifier();
        atom_ = out_.size();
        ++at_;
        if (c == '\\') return escape();
        if (c == '[') return char_class();
        if (c == '(') return group();
        if (c == ')') return close_group();
        if (c == '{') out_ += '\\';  // literal in both, but say so
        out_ += c;
    }

    void group() {
        starts_.push_back(out_.size());
        out_ += '(';
        if (!take("?")) return;
        out_ += '?';
        if (next_is("<=") || next_is("<!")) {
            out_ += take();
            out_ += take();
        } else if (next_is(":") || next_is("=") || next_is("!") || next_is(">")) {
            out_ += take();
        } else {
            group_options();
        }
    }

    /// (?i) (?i: (?m-i: …: Ruby's m is PCRE2's s.
    void group_options() {
        for (char c = take(); c != ':' && c != ')'; c = take()) {
            if (c != 'i' && c != 'm' && c != '-') unsupported(std::string("(?") + c);
            out_ += c == 'm' ? 's' : c;
        }
        --at_;
        if (take(":")) out_ += ':';
        // A ")" ends the group as usual: both engines then set the options for the rest of the outer group.
    }

    void close_group() {
        if (starts_.empty()) corrupt("a ')' without '('");
        atom_ = starts_.back();
        starts_.pop_back();
        out_ += ')';
    }

    /// Characters of "{n}", "{n,}", "{,m}" or "{n,m}" at at_; 0 if there is no such thing, and the brace is literal.
    size_t interval_size() const {
        size_t i = at_ + 1;
        size_t n_digits = 0, n_commas = 0;
        for (; i < pattern_.size() && (is_digit(pattern_[i]) || pattern_[i] == ','); ++i)
            (pattern_[i] == ',' ? n_commas : n_digits) += 1;
        const bool closed = i < pattern_.size() && pattern_[i] == '}';
        return closed && n_digits > 0 && n_commas <= 1 ? i + 1 - at_ : 0;
    }

    void quantifier() {
        const char c = pattern_[at_];
        if (c != '{') {
            out_ += take();
            if (next_is("?") || next_is("+")) out_ += take();
            return;
        }
        const std::string_view interval = pattern_.substr(at_, interval_size());
        at_ += interval.size();
        out_ += interval.starts_with("{,") ? "{0" + std::string(interval.substr(1)) : std::string(interval);
        if (interval.find(',') == interval.npos && next_is("?")) unsupported(std::string(interval) + "?");
        if (take("?")) out_ += '?';
        if (next_is("+")) {  // in Ruby's syntax this repeats the repetition
            out_.insert(atom_, "(?:");
            out_ += ')';
        }
    }

    void escape() {
        const char c = take();
        if (c == 's' || c == 'S') {
            out_ += c == 's' ? "[" : "[^";
            out_ += kSpace;
            out_ += ']';
        } else if (c == 'h' || c == 'H') {
            out_ += c == 'h' ? "[" : "[^";
            out_ += kHexDigit;
            out_ += ']';
        } else if (c == 'A' || c == 'z' || c == 'Z' || c == 'D') {
            out_ += '\\';
            out_ += c;
        } else {
            shared_escape(c);
        }
    }

    void class_escape() {
        const char c = take();
        if (c == 's')
            out_ += kSpace;
        else if (c == 'h')
            out_ += kHexDigit;
        else
            shared_escape(c);
    }

    /// Escapes that may stand inside and outside a class.
    void shared_escape(char c) {
        if (c == 'p' || c == 'P') return property(c == 'P');
        if (c == 'x' || c == 'u') return code_point(c);
        if (c == 'v') {
            out_ += "\\x0b";
        } else if (c == 'd' || kPlainLetters.find(c) != kPlainLetters.npos || !(is_letter(c) || is_digit(c))) {
            out_ += '\\';
            out_ += c;
        } else {
            unsupported(std::string("\\") + c);
        }
    }

    void property(bool negated) {
        const size_t begin = at_ - 2;
        const size_t end = pattern_.find('}', at_);
        if (!next_is("{") || end == pattern_.npos) corrupt("\\p without {name}");
        std::string_view name = pattern_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        if (name.starts_with('^')) {
            negated = !negated;
            name.remove_prefix(1);
        }
        if (!contains(kCategories, name) && !contains(kScripts, name)) unsupported(pattern_.substr(begin, at_ - begin));
        out_ += negated ? "\\P{" : "\\p{";
        if (contains(kScripts, name)) out_ += "sc:";
        out_ += name;
        out_ += '}';
    }

    /// \x{H…}, \xHH (ASCII only: more would be a raw byte) or \uHHHH.
    void code_point(char kind) {
        const size_t begin = at_ - 2;
        std::string_view digits;
        if (kind == 'x' && take("{")) {
            const size_t end = std::min(pattern_.find('}', at_), pattern_.size());
            digits = pattern_.substr(at_, end - at_);
            at_ = std::min(end + 1, pattern_.size());
        } else {
            digits = pattern_.substr(at_, kind == 'u' ? 4 : 2);
            at_ += digits.size();
            if (kind == 'u' && digits.size() < 4) corrupt("\\u without four digits");
        }
        const bool raw_byte = kind == 'x' && pattern_[begin + 2] != '{' && (digits.empty() || digits[0] >= '8');
        if (digits.empty() || digits.size() > 8 || !std::all_of(digits.begin(), digits.end(), is_hex) || raw_byte)
            unsupported(pattern_.substr(begin, at_ - begin));
        out_ += "\\x{";
        out_ += digits;
        out_ += '}';
    }

    /// [...], after its bracket.
    void char_class() {
        const bool negated = take("^");
        const size_t begin = out_.size();
        out_ += negated ? "[^" : "[";
        if (next_is("]")) unsupported("[]");
        while (!take("]")) {
            if (take("&&")) return intersection(begin, negated);
            class_member();
        }
        out_ += ']';
    }

    void class_member() {
        const char c = take();
        if (c == '\\') return class_escape();
        if (c == '[') {
            if (next_is(":")) unsupported("[:");
            if (next_is("^")) unsupported("[^…] inside a class");
            while (!take("]")) {  // a union: its members are members of the outer class
                if (next_is("&&")) unsupported("&& inside a nested class");
                class_member();
            }
            return;
        }
        out_ += c;
    }

    /// [X&&[^Y]], after the &&, with "[X" written from `begin` on: an X with no Y at this place.
    void intersection(size_t begin, bool negated) {
        if (negated || !take("[^")) unsupported("&& other than [X&&[^Y]]");
        const std::string wanted = out_.substr(begin) + "]";
        out_.resize(begin);
        out_ += "(?:(?![";
        while (!take("]")) {
            if (next_is("&&")) unsupported("&& other than [X&&[^Y]]");
            class_member();
        }
        if (!take("]")) unsupported("&& other than [X&&[^Y]]");
        out_ += "])" + wanted + ")";
    }

    std::string_view pattern_;
    size_t at_ = 0;
    std::string out_;
    size_t atom_ = 0;             // where the last atom begins in out_
    std::vector<size_t> starts_;  // where the open groups begin in out_
};

}  // namespace

std::string oniguruma_to_pcre2(std::string_view pattern) { return Rewriter(pattern).run(); }

}  // namespace llm
