// Escapes in string literals, as Python's "unicode-escape" reads them.

#include <fmt/core.h>

#include "src/chat/syntax_error.h"
#include "src/chat/tag_lexer.h"
#include "src/tokenizer/utf8.h"

namespace llm::jinja {
namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

class Unescaper {
  public:
    Unescaper(std::string_view text, const std::string& name, int line) : text_(text), name_(name), line_(line) {}

    std::string run() {
        while (at_ < text_.size()) {
            if (text_[at_] == '\\' && at_ + 1 < text_.size())
                escape();
            else
                out_ += text_[at_++];
        }
        return std::move(out_);
    }

  private:
    std::string_view text_;
    const std::string& name_;
    int line_;
    size_t at_ = 0;
    std::string out_;

    void escape();
    void hex(size_t n_digits);
    void octal();
    void non_ascii();
};

void Unescaper::escape() {
    constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeaning = "\a\b\f\n\r\t\v\\'\"";
    const char c = text_[at_ + 1];
    if (const size_t i = kLetters.find(c); i != kLetters.npos) {
        out_ += kMeaning[i];
        at_ += 2;
    } else if (c == '\n') {
        at_ += 2;
    } else if (c >= '0' && c <= '7') {
        octal();
    } else if (c == 'x' || c == 'u' || c == 'U') {
        hex(c == 'x' ? 2 : c == 'u' ? 4 : 8);
    } else if (c == 'N') {
        unsupported(name_, line_, "\\N{{…}} in a string is not supported; write the character itself");
    } else if (static_cast<unsigned char>(c) >= 0x80) {
        non_ascii();
    } else {
        out_ += '\\';
        out_ += c;
        at_ += 2;
    }
}

void Unescaper::hex(size_t n_digits) {
    char32_t value = 0;
    for (size_t i = 0; i < n_digits; ++i) {
        const int digit = at_ + 2 + i < text_.size() ? hex_value(text_[at_ + 2 + i]) : -1;
        if (digit < 0) syntax_error(name_, line_, "\\{} in a string needs {} digits", text_[at_ + 1], n_digits);
        value = value * 16 + static_cast<char32_t>(digit);
    }
    const bool surrogate = value >= 0xD800 && value < 0xE000;
    if (value > 0x10FFFF || surrogate)
        syntax_error(name_, line_, "{} in a string is no character", text_.substr(at_, n_digits + 2));
    append_utf8(out_, value);
    at_ += n_digits + 2;
}

void Unescaper::octal() {
    char32_t value = 0;
    size_t i = at_ + 1;
    for (; i < text_.size() && i < at_ + 4 && text_[i] >= '0' && text_[i] <= '7'; ++i)
        value = value * 8 + static_cast<char32_t>(text_[i] - '0');
    append_utf8(out_, value);
    at_ = i;
}

/// jinja2 spells non-ASCII characters as escapes before it reads the escapes, so a backslash before one is a backslash
/// before a backslash, and the spelling stays.
void Unescaper::non_ascii() {
    const CodePoint c = code_point_at(text_, at_ + 1);
    const auto value = static_cast<uint32_t>(c.value);
    out_ += '\\';
    out_ += value < 0x100     ? fmt::format("x{:02x}", value)
            : value < 0x10000 ? fmt::format("u{:04x}", value)
                              : fmt::format("U{:08x}", value);
    at_ += 1 + c.size;
}

}  // namespace

std::string unescape_literal(std::string_view text, const std::string& name, int line) {
    return Unescaper(text, name, line).run();
}

}  // namespace llm::jinja
