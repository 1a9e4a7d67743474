#pragma once
// Work on strings that methods and filters share. Origins follow the characters.

#include <optional>
#include <string_view>
#include <vector>

#include "src/chat/runtime.h"

namespace llm::jinja {

/// The first occurrence at or after `from`, or npos; in linear time.
size_t find_bytes(std::string_view text, std::string_view part, size_t from);

/// Without characters at the ends: those of `chars`, or white space.
Text strip(Runtime& runtime, const Text& text, std::optional<std::string_view> chars, bool left, bool right);
/// The first `count` occurrences replaced; all if it is negative.
Text replace(Runtime& runtime, const Text& text, std::string_view old, const Text& with, int64_t count);
/// str.splitlines
std::vector<Text> split_lines(const Text& text, bool keep_ends);
/// Repeats `fill` (one character) before and after the text.
Text pad(Runtime& runtime, const Text& text, size_t before, size_t after, const Text& fill);
/// str.join
Text join(Runtime& runtime, const Text& separator, const std::vector<Value>& items);

/// A string that takes over `markup` from another.
Value like(Runtime& runtime, Text text, const Text& other);
Value texts_to_list(Runtime& runtime, std::vector<Text> texts, bool markup, bool as_tuple = false);

}  // namespace llm::jinja
