#pragma once
// Methods of strings, lists and dicts.

#include <string_view>

#include "src/chat/runtime.h"

namespace llm::jinja {

using Method = Value (*)(Runtime& runtime, const Value& self, Arguments& arguments);

/// The method of that name, or null. Throws unsupported for those that Python has and this interpreter lacks.
Method find_method(const Value& self, std::string_view name);
/// True for what the sandbox hides: internals of Python, and methods that change a list or dict (unless allowed).
bool is_unsafe_attribute(const Runtime& runtime, const Value& self, std::string_view name);

// For find_method: the tables of one type each.
Method find_string_method(std::string_view name);
Method find_string_search_method(std::string_view name);
Method find_string_split_method(std::string_view name);
Method find_list_method(std::string_view name);
Method find_dict_method(std::string_view name);

}  // namespace llm::jinja
