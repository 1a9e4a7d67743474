#pragma once
// Properties of code points and normalization forms, as Hugging Face's tokenizers mean them (Unicode's own tables, here
// from utf8proc).

#include <string>
#include <string_view>

namespace llm {

bool is_white_space(char32_t c);  ///< property White_Space
bool is_numeric(char32_t c);      ///< general categories Nd, Nl, No
bool is_punctuation(char32_t c);  ///< general category P* in Unicode 8, or one of ASCII's $+<=>^`|~
/// What a word is made of (UTS 18): Alphabetic, marks, decimal digits, connectors, joiners.
bool is_word(char32_t c);

/// Bytes of the first extended grapheme cluster (UAX 29) of a text that is valid UTF-8 and not empty.
size_t grapheme_size(std::string_view text);

/// Lower case of every character by itself (no context: a final sigma stays a plain one).
std::string to_lower(std::string_view text);

enum class NormalForm { Nfc, Nfd, Nfkc, Nfkd };
/// Text in one of the normalization forms (UAX 15), in linear time but for sorting runs of combining marks. The text
/// must be valid UTF-8.
std::string normalize(std::string_view text, NormalForm form);

}  // namespace llm
