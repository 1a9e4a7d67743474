#include "src/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "ggmlx/core/error.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

struct Span {
    char32_t first, last;
};

template <size_t n>
bool contains(const Span (&spans)[n], char32_t c) {
    return std::any_of(std::begin(spans), std::end(spans), [c](Span s) { return c >= s.first && c <= s.last; });
}

// Hugging Face's tokenizers has older tables than utf8proc for two things. These punctuation characters came after the
// one for Punctuation (Unicode 8) …
constexpr Span kNewPunctuation[] = {
    {0x61D, 0x61D},     {0x9FD, 0x9FD},     {0xA76, 0xA76},     {0xC77, 0xC77},     {0xC84, 0xC84},
    {0x1B7D, 0x1B7E},   {0x2E43, 0x2E4F},   {0x2E52, 0x2E5D},   {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59},
    {0x10F86, 0x10F89}, {0x1144B, 0x1144F}, {0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C},
    {0x116B9, 0x116B9}, {0x1183B, 0x1183B}, {0x11944, 0x11946}, {0x119E2, 0x119E2}, {0x11A3F, 0x11A46},
    {0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11C41, 0x11C45}, {0x11C70, 0x11C71}, {0x11EF7, 0x11EF8},
    {0x11FFF, 0x11FFF}, {0x12FF1, 0x12FF2}, {0x16E97, 0x16E9A}, {0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F}};
// … these two were punctuation then …
constexpr Span kFormerPunctuation[] = {{0x166D, 0x166D}, {0x111C9, 0x111C9}};
// … and these came after the one for normal forms (Unicode 12.0), which leaves them as they are.
constexpr Span kNewCompatible[] = {{0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xAB69, 0xAB69},   {0x10781, 0x107BA},
                                   {0x11938, 0x11938}, {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

/// The symbols that are Alphabetic: circled and squared Latin letters.
bool is_letter_symbol(char32_t c) {
    return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
           (c >= 0x1F170 && c <= 0x1F189);
}

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

/// Puts runs of combining marks into canonical order: stable, by class.
void sort_marks(std::vector<utf8proc_int32_t>& chars) {
    const auto is_starter = [](utf8proc_int32_t c) { return combining_class(c) == 0; };
    const auto by_class = [](utf8proc_int32_t a, utf8proc_int32_t b) {
        return combining_class(a) < combining_class(b);
    };
    for (auto at = chars.begin(); at != chars.end();) {
        const auto first = std::find_if_not(at, chars.end(), is_starter);
        at = std::find_if(first, chars.end(), is_starter);
        if (at - first > 1) std::stable_sort(first, at, by_class);
    }
}

void append_decomposed(std::vector<utf8proc_int32_t>& out, std::string_view text, utf8proc_option_t options) {
    utf8proc_int32_t parts[32];  // the longest decomposition has 18
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        at += c.size;
        if (c.value >= kNewCompatible[0].first && contains(kNewCompatible, c.value)) {
            out.push_back(static_cast<utf8proc_int32_t>(c.value));
            continue;
        }
        int last_boundary_class = 0;
        const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.value), parts, std::size(parts), options,
                                               &last_boundary_class);
        require(n > 0 && n <= std::ssize(parts), ErrorKind::InvalidArgument, "cannot decompose U+{:04X}",
                static_cast<uint32_t>(c.value));
        out.insert(out.end(), parts, parts + n);
    }
}

/// Normalizes text without looking for parts that need no work.
std::string normalize_all(std::string_view text, NormalForm form) {
    const bool compatible = form == NormalForm::Nfkc || form == NormalForm::Nfkd;
    const bool compose = form == NormalForm::Nfc || form == NormalForm::Nfkc;
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
    std::vector<utf8proc_int32_t> chars;
    append_decomposed(chars, text, options);
    sort_marks(chars);
    auto n = std::ssize(chars);
    if (compose)
        n = utf8proc_normalize_utf32(chars.data(), n,
                                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    require(n >= 0, ErrorKind::InvalidArgument, "cannot normalize text: {}", utf8proc_errmsg(n));
    std::string out;
    for (utf8proc_ssize_t i = 0; i < n; ++i) append_utf8(out, static_cast<char32_t>(chars[static_cast<size_t>(i)]));
    return out;
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

}  // namespace

bool is_white_space(char32_t c) {
    if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
    if (c == 0x85) return true;
    const auto k = category(c);
    return k == UTF8PROC_CATEGORY_ZS || k == UTF8PROC_CATEGORY_ZL || k == UTF8PROC_CATEGORY_ZP;
}

bool is_numeric(char32_t c) {
    if (c < 0x80) return c >= '0' && c <= '9';
    const auto k = category(c);
    return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    const auto k = category(c);
    const bool now = k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
    return now ? !contains(kNewPunctuation, c) : contains(kFormerPunctuation, c);
}

bool is_word(char32_t c) {
    const auto k = category(c);
    const bool letter_or_mark = k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_ME;
    return letter_or_mark || k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_PC ||
           c == 0x200C || c == 0x200D || is_letter_symbol(c);
}

size_t grapheme_size(std::string_view text) {
    CodePoint c = code_point_at(text, 0);
    size_t end = c.size;
    utf8proc_int32_t state = 0;
    while (end < text.size()) {
        const CodePoint next = code_point_at(text, end);
        const bool both_ascii = c.value < 0x80 && next.value < 0x80;
        if (both_ascii && !(c.value == '\r' && next.value == '\n')) break;
        if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.value),
                                             static_cast<utf8proc_int32_t>(next.value), &state))
            break;
        end += next.size;
        c = next;
    }
    return end;
}

std::string to_lower(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        at += c.size;
        if (c.value == 0x130)  // the one character whose lower case is two: i and a dot above
            out += "i\xCC\x87";
        else
            append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.value))));
    }
    return out;
}

std::string normalize(std::string_view text, NormalForm form) {
    // An ASCII character never changes, and nothing composes across it: only stretches without ASCII need work, each
    // with the one ASCII character before it, onto which marks may compose.
    std::string out;
    out.reserve(text.size());
    size_t done = 0;
    for (size_t at = 0; at < text.size();) {
        if (is_ascii(text[at])) {
            ++at;
            continue;
        }
        const size_t begin = at > done ? at - 1 : at;
        while (at < text.size() && !is_ascii(text[at])) ++at;
        out.append(text, done, begin - done);
        out += normalize_all(text.substr(begin, at - begin), form);
        done = at;
    }
    out.append(text, done);
    return out;
}

}  // namespace llm
