#pragma once
// The inside of one tag: names, numbers, strings, operators, and where the tag ends.

#include <string>
#include <string_view>
#include <vector>

#include "src/chat/token.h"

namespace llm::jinja {

/// Reads from `at` to the end of the tag and appends its tokens, without the one for the end. Returns where the closing
/// "%}" or "}}" begins (its "-" or "+" included). line is advanced. Throws corrupt_file.
size_t tokenize_tag(std::string_view source, size_t at, std::string_view closing, const std::string& name, int& line,
                    std::vector<Token>& out);

/// What the inside of a string literal stands for; escapes as in Python.
std::string unescape_literal(std::string_view text, const std::string& name, int line);

}  // namespace llm::jinja
