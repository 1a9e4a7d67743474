#pragma once
// Messages as clients send them, put into the form that a template expects.

#include <nlohmann/json.hpp>

#include "src/chat/template.h"

namespace llm {

/// What the template is given: null members left out (as transformers does), reasoning under all its names, contents of
/// text parts joined where the template knows strings only, arguments of tool calls as objects where it cannot take
/// their text. Throws invalid_argument, naming the message, for what is no message and for parts that are no text.
nlohmann::ordered_json normalize_messages(const nlohmann::ordered_json& messages, const ChatTemplate& chat_template,
                                          const nlohmann::ordered_json& special_tokens);

}  // namespace llm
