#pragma once
// Python's view of characters: what counts as white space, letters, digits; upper and lower case; what repr() escapes.

#include <string>
#include <string_view>

#include "src/chat/text.h"

namespace llm::jinja {

bool is_space(char32_t c);  ///< str.isspace
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric_char(char32_t c);
bool is_lower_char(char32_t c);
bool is_upper_char(char32_t c);
bool is_title_char(char32_t c);
bool is_printable(char32_t c);
inline bool is_cased(char32_t c) { return is_lower_char(c) || is_upper_char(c) || is_title_char(c); }
inline bool is_alnum(char32_t c) { return is_alpha(c) || is_decimal(c) || is_digit(c) || is_numeric_char(c); }

/// The first byte of text (between begin and end) that is no white space; end if there is none.
size_t skip_space(std::string_view text, size_t begin, size_t end);
/// One past the last byte that is no white space; begin if there is none.
size_t skip_space_back(std::string_view text, size_t begin, size_t end);

enum class Case { Lower, Upper, Title, Fold };
/// The character in another case: up to three characters ("ß" -> "SS").
std::u32string convert_case(char32_t c, Case to);
/// str.lower, upper, title, capitalize, swapcase.
Text lower(const Text& text);
Text upper(const Text& text);
Text title(const Text& text);
Text capitalize(const Text& text);
Text swap_case(const Text& text);
Text fold_case(const Text& text);

}  // namespace llm::jinja
