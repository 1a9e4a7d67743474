#pragma once
// Tests: value is name(arguments).

#include <string_view>

#include "src/chat/runtime.h"

namespace llm::jinja {

bool has_test(std::string_view name);
/// Throws for an unknown name.
bool apply_test(Runtime& runtime, std::string_view name, const Value& input, const Arguments& arguments);

}  // namespace llm::jinja
