#pragma once
// A rendered prompt, and who wrote which part of it: control tokens count only where the template, not a user, wrote
// them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

/// Where a stretch of text comes from.
enum class Origin : uint8_t {
    Template,   ///< written by the template, or a special token of the tokenizer's configuration
    Assistant,  ///< an earlier answer of the model that came back in a message of role "assistant"
    Input,      ///< everything else that was passed in: users, system prompts, tools and their results, documents
};
std::string_view name(Origin origin);  ///< "template", "assistant", "input"

/// A stretch of text of one origin; it begins where the one before it ends.
struct Run {
    size_t end = 0;  ///< one past its last byte
    Origin origin = Origin::Template;
    bool operator==(const Run&) const = default;
};

struct Prompt {
    std::string text;       ///< valid UTF-8
    std::vector<Run> runs;  ///< cover the text; neighbours differ
};

}  // namespace llm
