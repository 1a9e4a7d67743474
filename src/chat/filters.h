#pragma once
// Filters: value|name(arguments).

#include <string_view>

#include "src/chat/runtime.h"

namespace llm::jinja {

using Filter = Value (*)(Runtime& runtime, const Value& input, Arguments& arguments);

bool has_filter(std::string_view name);
/// jinja2 has it, this interpreter has not.
bool is_left_out_filter(std::string_view name);
/// Throws for an unknown name.
Value apply_filter(Runtime& runtime, std::string_view name, const Value& input, Arguments& arguments);

/// For sort, map, join …: the attribute "a.b.0" (or a number) of a value; the value itself without an attribute.
Value attribute_path(Runtime& runtime, const Value& value, const Value& path);

// The tables that has_filter looks into.
Filter find_text_filter(std::string_view name);
Filter find_list_filter(std::string_view name);
Filter find_choice_filter(std::string_view name);
Filter find_number_filter(std::string_view name);

}  // namespace llm::jinja
