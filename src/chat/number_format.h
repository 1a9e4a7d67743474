#pragma once
// Numbers in the ways that "%5.2f" and "{:>8,}" ask for.

#include <optional>
#include <string>

#include "src/chat/runtime.h"

namespace llm::jinja {

/// What a format specification can say; the two syntaxes fill in the same.
struct FormatSpec {
    std::string fill = " ";  ///< one character
    char align = '\0';       ///< '<' '>' '^' '='
    char sign = '-';         ///< '-' '+' ' '
    bool alternate = false;  ///< "#"
    char grouping = '\0';    ///< ',' or '_'
    int64_t width = 0;
    std::optional<int64_t> precision;
    char type = '\0';
};

/// Digits of a number, with sign, prefix and grouping, without padding. Throws for a type letter that does not fit.
std::string format_int(int64_t value, const FormatSpec& spec);
std::string format_float(double value, const FormatSpec& spec);
/// A formatted number or string, padded to the width.
Text pad_to_width(Runtime& runtime, const Text& text, const FormatSpec& spec, char default_align);

/// Fails for widths and precisions that no template needs.
void check_format_size(int64_t size);

}  // namespace llm::jinja
