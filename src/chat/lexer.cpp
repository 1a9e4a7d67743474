#include "src/chat/lexer.h"

#include <algorithm>
#include <optional>

#include "src/chat/characters.h"
#include "src/chat/syntax_error.h"
#include "src/chat/tag_lexer.h"

namespace llm::jinja {
namespace {

/// "\r\n" and "\r" become "\n"; one newline at the end goes.
std::string normalize_newlines(std::string_view source) {
    std::string result;
    result.reserve(source.size());
    for (size_t i = 0; i < source.size(); ++i) {
        if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
        result += source[i] == '\r' ? '\n' : source[i];
    }
    if (result.ends_with('\n')) result.pop_back();
    return result;
}

bool is_sign(char c) { return c == '-' || c == '+'; }

/// How a tag ends: where its text goes on, and whether the end of the tag took a newline with it.
struct TagEnd {
    size_t next = 0;
    bool after_newline = false;
};

class Lexer {
  public:
    Lexer(std::string_view source, const std::string& name) : source_(source), name_(name) {}
    std::vector<Token> run();

  private:
    std::string_view source_;
    const std::string& name_;
    std::vector<Token> tokens_;
    size_t at_ = 0;
    int line_ = 1;
    bool line_starting_ = true;  // what was read last ended with a newline

    char char_at(size_t i) const { return i < source_.size() ? source_[i] : '\0'; }
    /// The next "{{", "{%" or "{#".
    size_t find_tag() const;
    void data(size_t end, char sign, bool strip_line);
    void comment(size_t begin);
    void tag(size_t begin);
    bool raw(size_t begin);
    /// After "%}", "}}" or "#}" that begins, with its sign, at `at`.
    TagEnd tag_end(size_t at, std::string_view closing, bool trim) const;
    void finish(const TagEnd& end);
    void count_lines(size_t begin, size_t end) {
        line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(begin),
                                             source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    }
    /// Where "{%" + sign + word + end of tag, begins and ends: the parts of {% raw %} and {% endraw %}.
    struct Marker {
        size_t begin = 0, sign_at = 0, closing_at = 0;
    };
    std::optional<Marker> marker(size_t begin, std::string_view word) const;
};

size_t Lexer::find_tag() const {
    for (size_t i = at_; (i = source_.find('{', i)) != source_.npos; ++i)
        if (const char c = char_at(i + 1); c == '{' || c == '%' || c == '#') return i;
    return source_.npos;
}

/// Emits the text up to `end`, where a tag with this sign begins.
void Lexer::data(size_t end, char sign, bool strip_line) {
    const size_t begin = at_;
    size_t stop = end;
    if (sign == '-') {
        stop = skip_space_back(source_, begin, end);
    } else if (sign != '+' && strip_line) {
        const size_t newline = source_.substr(begin, end - begin).rfind('\n');
        const size_t line_begin = newline == source_.npos ? begin : begin + newline + 1;
        if ((line_begin > begin || line_starting_) && skip_space(source_, line_begin, end) == end) stop = line_begin;
    }
    if (stop > begin) tokens_.push_back({TokenKind::Data, std::string(source_.substr(begin, stop - begin)), line_});
    count_lines(begin, end);
    at_ = end;
}

TagEnd Lexer::tag_end(size_t at, std::string_view closing, bool trim) const {
    const char sign = is_sign(char_at(at)) ? char_at(at) : '\0';
    size_t next = at + (sign ? 1 : 0) + closing.size();
    if (sign == '-')
        next = skip_space(source_, next, source_.size());
    else if (!sign && trim && char_at(next) == '\n')
        ++next;
    return {next, source_[next - 1] == '\n'};
}

void Lexer::finish(const TagEnd& end) {
    count_lines(at_, end.next);
    at_ = end.next;
    line_starting_ = end.after_newline;
}

void Lexer::comment(size_t begin) {
    const size_t inside = begin + 2 + (is_sign(char_at(begin + 2)) ? 1 : 0);
    data(begin, char_at(begin + 2), true);
    size_t close = source_.find("#}", inside);
    if (close == source_.npos) syntax_error(name_, line_, "the comment is never closed (with \"#}}\")");
    if (close > inside && is_sign(source_[close - 1])) --close;
    finish(tag_end(close, "#}", true));
}

std::optional<Lexer::Marker> Lexer::marker(size_t begin, std::string_view word) const {
    Marker m{begin, begin + 2, 0};
    size_t i = begin + 2 + (is_sign(char_at(begin + 2)) ? 1 : 0);
    i = skip_space(source_, i, source_.size());
    if (source_.substr(i, word.size()) != word) return std::nullopt;
    m.closing_at = skip_space(source_, i + word.size(), source_.size());
    const size_t percent = m.closing_at + (is_sign(char_at(m.closing_at)) ? 1 : 0);
    return source_.substr(percent, 2) == "%}" ? std::optional(m) : std::nullopt;
}

/// {% raw %}…{% endraw %}: true if that is what begins here.
bool Lexer::raw(size_t begin) {
    const auto open = marker(begin, "raw");
    if (!open || char_at(open->closing_at) == '+') return false;
    data(begin, char_at(open->sign_at), true);
    finish(tag_end(open->closing_at, "%}", false));
    for (size_t i = at_; (i = source_.find("{%", i)) != source_.npos; i += 2) {
        if (const auto close = marker(i, "endraw")) {
            data(i, char_at(close->sign_at), true);
            finish(tag_end(close->closing_at, "%}", true));
            return true;
        }
    }
    syntax_error(name_, line_, "{{% raw %}} is never closed (with {{% endraw %}})");
}

void Lexer::tag(size_t begin) {
    const bool variable = source_[begin + 1] == '{';
    const std::string_view closing = variable ? "}}" : "%}";
    data(begin, char_at(begin + 2), !variable);
    tokens_.push_back({variable ? TokenKind::VariableBegin : TokenKind::BlockBegin, "", line_});
    const size_t inside = begin + 2 + (is_sign(char_at(begin + 2)) ? 1 : 0);
    at_ = tokenize_tag(source_, inside, closing, name_, line_, tokens_);
    tokens_.push_back({variable ? TokenKind::VariableEnd : TokenKind::BlockEnd, "", line_});
    finish(tag_end(at_, closing, !variable));
}

std::vector<Token> Lexer::run() {
    for (size_t begin; (begin = find_tag()) != source_.npos;) {
        if (source_[begin + 1] == '#')
            comment(begin);
        else if (source_[begin + 1] == '{' || !raw(begin))
            tag(begin);
    }
    data(source_.size(), '+', false);
    tokens_.push_back({TokenKind::End, "", line_});
    return std::move(tokens_);
}

}  // namespace

std::vector<Token> tokenize(std::string_view source, const std::string& name) {
    const std::string text = normalize_newlines(source);
    return Lexer(text, name).run();
}

std::string describe(const Token& token) {
    switch (token.kind) {
        case TokenKind::Data:
            return "text";
        case TokenKind::VariableBegin:
            return "begin of print statement";
        case TokenKind::VariableEnd:
            return "end of print statement";
        case TokenKind::BlockBegin:
            return "begin of statement block";
        case TokenKind::BlockEnd:
            return "end of statement block";
        case TokenKind::End:
            return "end of template";
        case TokenKind::String:
            return "a string";
        default:
            return "'" + token.text + "'";
    }
}

}  // namespace llm::jinja
