#pragma once
// Reaching into values: attributes, items, slices, going through what can be gone through.

#include <optional>
#include <string_view>
#include <vector>

#include "src/chat/runtime.h"

namespace llm::jinja {

/// An undefined value with a reason.
Value undefined(std::string why);
/// object.name as jinja2 means it: a method or attribute, else an item of a dict; undefined if there is neither.
Value get_attribute(Runtime& runtime, const Value& object, std::string_view name);
/// object[key]: an item, else (for a string) an attribute; undefined if there is neither.
Value get_item(Runtime& runtime, const Value& object, const Value& key);
/// object[start:stop:step]; a part that is undefined here was left out.
Value get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop, const Value& step);

/// What a for loop would go through: characters, items, keys. A generator is used up by it.
std::vector<Value> items_of(Runtime& runtime, const Value& iterable);
bool is_iterable(const Value& value);
/// len(); nothing for what has no length.
std::optional<size_t> length_of(const Value& value);
/// The n characters from `first` on.
Text characters(const Text& text, size_t first, size_t n);

}  // namespace llm::jinja
