#pragma once
// Values as text: Python's str(), repr() and json.dumps().

#include <optional>
#include <string>

#include "src/chat/runtime.h"

namespace llm::jinja {

/// str(value): what printing a value gives. Undefined is empty.
Text to_text(Runtime& runtime, const Value& value);
/// The same as a value; strings stay what they are.
TextPtr to_string(Runtime& runtime, const Value& value);
void append_repr(Runtime& runtime, const Value& value, TextBuilder& out);
std::string repr_of_float(double value);
/// repr() of a string, for messages.
std::string repr_of_text(std::string_view text);

struct JsonStyle {
    bool ensure_ascii = false;
    std::optional<std::string> indent;  ///< of one level; none: all on one line
    Text item_separator, key_separator;
    bool sort_keys = false;
};
/// json.dumps(value). Throws for what JSON cannot hold.
Text to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace llm::jinja
