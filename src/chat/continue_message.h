#pragma once
// Leaving the last message of a conversation open, so that the model goes on with it.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/chat/prompt.h"

namespace llm {

/// Puts a mark behind the text of the last message and returns that text. Throws invalid_argument if it has none.
std::string mark_final_message(nlohmann::ordered_json& messages);

/// The prompt up to the mark. As transformers does: white space before the end is cut off, too, if the template trims
/// the message. Throws invalid_argument if the template left the text out.
Prompt cut_at_mark(Prompt prompt, const std::string& text);

}  // namespace llm
