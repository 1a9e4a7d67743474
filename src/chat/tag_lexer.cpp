#include "src/chat/tag_lexer.h"

#include <algorithm>
#include <array>

#include "src/chat/characters.h"
#include "src/chat/syntax_error.h"
#include "src/tokenizer/unicode.h"
#include "src/tokenizer/utf8.h"

namespace llm::jinja {
namespace {

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_digit_of(char c, int base) {
    if (base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) return true;
    return c >= '0' && c < '0' + std::min(base, 10);
}

/// Longest first.
constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

class TagLexer {
  public:
    TagLexer(std::string_view source, size_t at, std::string_view closing, const std::string& name, int& line,
             std::vector<Token>& out)
        : source_(source), at_(at), closing_(closing), name_(name), line_(line), out_(out) {}

    size_t run();

  private:
    std::string_view source_;
    size_t at_;
    std::string_view closing_;
    const std::string& name_;
    int& line_;
    std::vector<Token>& out_;
    std::string open_;  // brackets that are to be closed, innermost last

    char char_at(size_t i) const { return i < source_.size() ? source_[i] : '\0'; }
    bool at_end() const;
    void blanks();
    bool number();
    bool word();
    bool string();
    void operation();
    /// One past digits that may have single underscores between them; `at` if there is none.
    size_t digits(size_t at, int base = 10) const;
    /// One past "e+12" at `at`, or `at`.
    size_t exponent(size_t at) const;
    void push(TokenKind kind, size_t begin, size_t end);
};

bool TagLexer::at_end() const {
    if (!open_.empty()) return false;
    const bool block = closing_ == "%}";
    const char c = char_at(at_);
    return source_.substr(at_, 2) == closing_ ||
           ((c == '-' || (block && c == '+')) && source_.substr(at_ + 1, 2) == closing_);
}

void TagLexer::blanks() {
    const size_t end = skip_space(source_, at_, source_.size());
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
}

void TagLexer::push(TokenKind kind, size_t begin, size_t end) {
    std::string text(source_.substr(begin, end - begin));
    if (kind == TokenKind::Integer || kind == TokenKind::Float) std::erase(text, '_');
    out_.push_back({kind, std::move(text), line_});
    at_ = end;
}

size_t TagLexer::digits(size_t at, int base) const {
    if (!is_digit_of(char_at(at), base)) return at;
    while (is_digit_of(char_at(at), base) || (char_at(at) == '_' && is_digit_of(char_at(at + 1), base))) ++at;
    return at;
}

size_t TagLexer::exponent(size_t at) const {
    if (char_at(at) != 'e' && char_at(at) != 'E') return at;
    const size_t begin = at + 1 + (char_at(at + 1) == '-' || char_at(at + 1) == '+' ? 1 : 0);
    const size_t end = digits(begin);
    return end == begin ? at : end;
}

bool TagLexer::number() {
    if (!is_ascii_digit(char_at(at_))) return false;
    const size_t whole = digits(at_);
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';  // the 0 of "a.0.b"
    const size_t fraction = char_at(whole) == '.' ? digits(whole + 1) : whole;
    const bool has_fraction = fraction > whole + 1;
    const size_t end = exponent(has_fraction ? fraction : whole);
    if (!after_dot && (has_fraction || end > whole)) {
        push(TokenKind::Float, at_, end);
        return true;
    }
    const char kind = char_at(at_) == '0' ? static_cast<char>(char_at(at_ + 1) | 0x20) : '\0';
    const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    const size_t first = at_ + 2 + (char_at(at_ + 2) == '_' ? 1 : 0);
    if (base != 10 && digits(first, base) > first) {
        push(TokenKind::Integer, at_, digits(first, base));
    } else {
        push(TokenKind::Integer, at_, char_at(at_) == '0' ? digits(at_, 1) : whole);
    }
    return true;
}

bool TagLexer::word() {
    size_t end = at_;
    while (end < source_.size()) {
        const CodePoint c = code_point_at(source_, end);
        const char ascii = c.value < 0x80 ? static_cast<char>(c.value) : '\0';
        if (!(ascii ? is_ascii_letter(ascii) || is_ascii_digit(ascii) : is_word(c.value))) break;
        end += c.size;
    }
    if (end == at_) return false;
    push(TokenKind::Name, at_, end);
    return true;
}

bool TagLexer::string() {
    const char quote = char_at(at_);
    if (quote != '\'' && quote != '"') return false;
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) syntax_error(name_, line_, "a string is never closed (with {})", quote);
    const auto inside = source_.substr(at_ + 1, end - at_ - 1);
    out_.push_back({TokenKind::String, unescape_literal(inside, name_, line_), line_});
    line_ += static_cast<int>(std::count(inside.begin(), inside.end(), '\n'));
    at_ = end + 1;
    return true;
}

void TagLexer::operation() {
    const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                    [&](std::string_view o) { return source_.substr(at_, o.size()) == o; });
    if (found == kOperators.end()) {
        const CodePoint c = code_point_at(source_, at_);
        syntax_error(name_, line_, "unexpected character '{}'", source_.substr(at_, c.size));
    }
    const char c = found->front();
    if (c == '(' || c == '[' || c == '{') {
        open_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
        if (open_.empty()) syntax_error(name_, line_, "unexpected '{}'", c);
        if (open_.back() != c) syntax_error(name_, line_, "unexpected '{}', expected '{}'", c, open_.back());
        open_.pop_back();
    }
    push(TokenKind::Operator, at_, at_ + found->size());
}

size_t TagLexer::run() {
    const int begin_line = line_;
    while (true) {
        blanks();
        if (at_ >= source_.size()) syntax_error(name_, begin_line, "the tag is never closed (with \"{}\")", closing_);
        if (at_end()) return at_;
        if (!number() && !word() && !string()) operation();
    }
}

}  // namespace

size_t tokenize_tag(std::string_view source, size_t at, std::string_view closing, const std::string& name, int& line,
                    std::vector<Token>& out) {
    return TagLexer(source, at, closing, name, line, out).run();
}

}  // namespace llm::jinja
