#pragma once
// Python's ==, < and hash().

#include <cstddef>
#include <string_view>

#include "src/chat/runtime.h"

namespace llm::jinja {

bool equal(Runtime& runtime, const Value& a, const Value& b);
/// -1, 0 or 1; 2 if one of them is not a number. Throws for types that have no order; symbol: the operator that the
/// message names.
int order(Runtime& runtime, const Value& a, const Value& b, std::string_view symbol = "<");
inline bool less(Runtime& runtime, const Value& a, const Value& b) { return order(runtime, a, b) == -1; }
/// Equal values have equal hashes. Throws for a list, a dict and whatever else can change.
size_t hash_of(Runtime& runtime, const Value& value);
size_t hash_of(std::string_view text);

bool truthy(const Value& value);

/// Fails if the value is undefined, with its reason.
void require_defined(const Value& value);

}  // namespace llm::jinja
