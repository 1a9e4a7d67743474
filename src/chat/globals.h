#pragma once
// Functions that every template can call: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.

#include <optional>
#include <string_view>

#include "src/chat/runtime.h"

namespace llm::jinja {

std::optional<Value> global_function(Runtime& runtime, std::string_view name);

}  // namespace llm::jinja
