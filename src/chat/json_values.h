#pragma once
// JSON into values.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "src/chat/runtime.h"

namespace llm::jinja {

/// Strings get this origin; ill-formed UTF-8 in them becomes U+FFFD. Throws for numbers that do not fit 64 bits.
Value value_of(Runtime& runtime, const nlohmann::ordered_json& json, Origin origin);
/// The same for a text. Throws if it is no JSON.
Value parse_json(Runtime& runtime, std::string_view text, Origin origin);

}  // namespace llm::jinja
