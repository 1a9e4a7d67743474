#pragma once
// Characters whose upper or title case is more than one character.

namespace llm::jinja {

struct SpecialCasing {
    char32_t character;
    char32_t upper[3];  ///< unused places are 0
    char32_t title[3];  ///< all 0: one character, which utf8proc knows
};

/// Null for characters without such a case.
const SpecialCasing* special_casing(char32_t c);

}  // namespace llm::jinja
