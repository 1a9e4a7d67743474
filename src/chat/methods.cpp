#include "src/chat/methods.h"

#include <algorithm>
#include <initializer_list>

namespace llm::jinja {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool changes_list(std::string_view name) {
    return is_one_of(name, {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"});
}

bool changes_dict(std::string_view name) {
    return is_one_of(name, {"clear", "pop", "popitem", "setdefault", "update"});
}

/// Those that Python has and this interpreter has not.
bool is_missing_method(const Value& self, std::string_view name) {
    if (self.is_string())
        return is_one_of(name, {"encode", "format_map", "isidentifier", "isnumeric", "maketrans", "translate"});
    if (is_list_type(self, ListType::List)) return is_one_of(name, {"reverse", "sort"});
    if (self.as<Dict>()) return is_one_of(name, {"fromkeys", "popitem"});
    return false;
}

}  // namespace

bool is_unsafe_attribute(const Runtime& runtime, const Value& self, std::string_view name) {
    if (name.starts_with("__") && (self.is_string() || self.is_number() || self.is_object())) return !self.as<Dict>();
    if (runtime.mutable_lists) return false;
    return (is_list_type(self, ListType::List) && changes_list(name)) || (self.as<Dict>() && changes_dict(name));
}

Method find_method(const Value& self, std::string_view name) {
    Method found = nullptr;
    if (self.is_string()) {
        found = find_string_method(name);
        if (!found) found = find_string_search_method(name);
        if (!found) found = find_string_split_method(name);
    } else if (is_list_type(self, ListType::List) ||
               ((is_list_type(self, ListType::Tuple) || is_list_type(self, ListType::Range)) &&
                is_one_of(name, {"index", "count"}))) {
        found = find_list_method(name);
    } else if (self.as<Dict>()) {
        found = find_dict_method(name);
    }
    if (!found && is_missing_method(self, name))
        ggmlx::fail(ggmlx::ErrorKind::Unsupported, "the method '{}' of '{}' is not supported in templates", name,
                    type_name(self));
    return found;
}

}  // namespace llm::jinja
