#include "src/chat/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "src/chat/special_casing.h"
#include "src/tokenizer/utf8.h"

namespace llm::jinja {
namespace {

struct Span {
    char32_t first, last;
};

// Unicode 14: digits that are no decimal digits (superscripts, circled digits) …
constexpr Span kOtherDigits[] = {{0xB2, 0xB3},       {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},
                                 {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
                                 {0x2474, 0x247C},   {0x2488, 0x2490},   {0x24EA, 0x24EA},   {0x24F5, 0x24FD},
                                 {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},   {0x278A, 0x2792},
                                 {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};
// … and what is Lowercase or Uppercase without being a letter of that category.
constexpr Span kOtherLower[] = {
    {0xAA, 0xAA},     {0xBA, 0xBA},     {0x2B0, 0x2B8},     {0x2C0, 0x2C1},     {0x2E0, 0x2E4},     {0x345, 0x345},
    {0x37A, 0x37A},   {0x1D2C, 0x1D6A}, {0x1D78, 0x1D78},   {0x1D9B, 0x1DBF},   {0x2071, 0x2071},   {0x207F, 0x207F},
    {0x2090, 0x209C}, {0x2170, 0x217F}, {0x24D0, 0x24E9},   {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D},   {0xA770, 0xA770},
    {0xA7F8, 0xA7F9}, {0xAB5C, 0xAB5F}, {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}};
constexpr Span kOtherUpper[] = {
    {0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

template <size_t n>
bool within(const Span (&spans)[n], char32_t c) {
    return std::any_of(std::begin(spans), std::end(spans), [c](Span s) { return c >= s.first && c <= s.last; });
}

int category_of(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_case_ignorable(char32_t c) {
    constexpr std::u32string_view kPunctuation =
        U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55"
        U"\uFF07\uFF0E\uFF1A^`";
    const int k = category_of(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
           k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK || kPunctuation.find(c) != kPunctuation.npos;
}

constexpr char32_t kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2;

/// True for a capital sigma at `at` that ends a word: a cased character before it, none after it.
bool is_final_sigma(const std::u32string& text, size_t at) {
    size_t before = at;
    while (before > 0 && is_case_ignorable(text[before - 1])) --before;
    size_t after = at + 1;
    while (after < text.size() && is_case_ignorable(text[after])) ++after;
    return before > 0 && is_cased(text[before - 1]) && (after == text.size() || !is_cased(text[after]));
}

std::u32string characters_of(std::string_view text) {
    std::u32string result;
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        result += c.value;
        at += c.size;
    }
    return result;
}

/// Every character converted to the case that choose(i, c) names.
template <class Choose>
Text convert_text(const Text& text, Choose&& choose) {
    const std::u32string all = characters_of(text.bytes);
    TextBuilder out;
    size_t at = 0;
    for (size_t i = 0; i < all.size(); ++i) {
        const Case to = choose(i, all[i]);
        const bool final_sigma = to == Case::Lower && all[i] == kCapitalSigma && is_final_sigma(all, i);
        std::string converted;
        for (const char32_t c : final_sigma ? std::u32string(1, kFinalSigma) : convert_case(all[i], to))
            append_utf8(converted, c);
        out.append(converted, text.origin_at(at));
        at += code_point_at(text.bytes, at).size;
    }
    Text result = out.take();
    result.markup = text.markup;
    return result;
}

std::u32string until_zero(const char32_t (&chars)[3]) {
    return {std::begin(chars), std::find(std::begin(chars), std::end(chars), U'\0')};
}

std::u32string folded(char32_t c) {
    utf8proc_int32_t out[8];
    int boundary = 0;
    const auto n =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), out, std::ssize(out), UTF8PROC_CASEFOLD, &boundary);
    return n > 0 ? std::u32string(out, out + std::min(n, std::ssize(out))) : std::u32string(1, c);
}

}  // namespace

bool is_space(char32_t c) {
    if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_alpha(char32_t c) {
    const int k = category_of(c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}
bool is_decimal(char32_t c) { return category_of(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t c) { return is_decimal(c) || within(kOtherDigits, c); }
bool is_numeric_char(char32_t c) {
    const int k = category_of(c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}
bool is_lower_char(char32_t c) { return category_of(c) == UTF8PROC_CATEGORY_LL || within(kOtherLower, c); }
bool is_upper_char(char32_t c) { return category_of(c) == UTF8PROC_CATEGORY_LU || within(kOtherUpper, c); }
bool is_title_char(char32_t c) { return category_of(c) == UTF8PROC_CATEGORY_LT; }

bool is_printable(char32_t c) {
    if (c == ' ') return true;
    const int k = category_of(c);
    return k != UTF8PROC_CATEGORY_CN && k != UTF8PROC_CATEGORY_CC && k != UTF8PROC_CATEGORY_CF &&
           k != UTF8PROC_CATEGORY_CS && k != UTF8PROC_CATEGORY_CO && k != UTF8PROC_CATEGORY_ZS &&
           k != UTF8PROC_CATEGORY_ZL && k != UTF8PROC_CATEGORY_ZP;
}

size_t skip_space(std::string_view text, size_t begin, size_t end) {
    while (begin < end) {
        const CodePoint c = code_point_at(text, begin);
        if (!is_space(c.value)) break;
        begin += c.size;
    }
    return begin;
}

size_t skip_space_back(std::string_view text, size_t begin, size_t end) {
    while (end > begin) {
        const CodePoint c = last_code_point(text.substr(begin, end - begin));
        if (!is_space(c.value)) break;
        end -= c.size;
    }
    return end;
}

std::u32string convert_case(char32_t c, Case to) {
    const auto simple = static_cast<utf8proc_int32_t>(c);
    const SpecialCasing* special = c < 0x80 ? nullptr : special_casing(c);
    switch (to) {
        case Case::Lower:
            if (c == 0x130) return U"i\u0307";
            return {static_cast<char32_t>(utf8proc_tolower(simple))};
        case Case::Upper:
            if (special) return until_zero(special->upper);
            return {static_cast<char32_t>(utf8proc_toupper(simple))};
        case Case::Title:
            if (special && special->title[0]) return until_zero(special->title);
            return {static_cast<char32_t>(utf8proc_totitle(simple))};
        case Case::Fold:
            break;
    }
    return folded(c);
}

Text lower(const Text& text) {
    return convert_text(text, [](size_t, char32_t) { return Case::Lower; });
}
Text upper(const Text& text) {
    return convert_text(text, [](size_t, char32_t) { return Case::Upper; });
}
Text fold_case(const Text& text) {
    return convert_text(text, [](size_t, char32_t) { return Case::Fold; });
}
Text capitalize(const Text& text) {
    return convert_text(text, [](size_t i, char32_t) { return i == 0 ? Case::Title : Case::Lower; });
}
Text swap_case(const Text& text) {
    return convert_text(text, [](size_t, char32_t c) { return is_upper_char(c) ? Case::Lower : Case::Upper; });
}
Text title(const Text& text) {
    bool in_word = false;
    return convert_text(text, [&](size_t, char32_t c) {
        const bool first = !in_word;
        in_word = is_cased(c);
        return first ? Case::Title : Case::Lower;
    });
}

}  // namespace llm::jinja
