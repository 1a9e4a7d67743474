#pragma once
// From a template's source to tokens: tags are found, white space around them is taken away as "-", "+", trim_blocks
// and lstrip_blocks say, comments vanish, raw blocks become text. jinja2's rules, including that a newline at the very
// end of the source does not count.

#include <string>
#include <string_view>
#include <vector>

#include "src/chat/token.h"

namespace llm::jinja {

/// source: valid UTF-8. The last token is End. Throws corrupt_file; name is for its message.
std::vector<Token> tokenize(std::string_view source, const std::string& name);

}  // namespace llm::jinja
