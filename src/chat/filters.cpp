#include "src/chat/filters.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "src/chat/access.h"

namespace llm::jinja {
namespace {

Filter find_filter(std::string_view name) {
    for (const auto find : {find_text_filter, find_list_filter, find_choice_filter, find_number_filter})
        if (const Filter found = find(name)) return found;
    return nullptr;
}

/// A part of "a.0.b": digits are an index.
Value path_part(Runtime& runtime, std::string_view part) {
    int64_t index = 0;
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    if (digits && std::from_chars(part.data(), part.data() + part.size(), index).ec == std::errc()) return index;
    return runtime.string(std::string(part));
}

}  // namespace

bool has_filter(std::string_view name) { return find_filter(name) != nullptr; }

bool is_left_out_filter(std::string_view name) {
    constexpr std::array kNames = {"attr",      "filesizeformat", "groupby", "pprint",   "random",
                                   "striptags", "urlencode",      "urlize",  "wordwrap", "xmlattr"};
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

Value apply_filter(Runtime& runtime, std::string_view name, const Value& input, Arguments& arguments) {
    const Filter filter = find_filter(name);
    if (!filter && is_left_out_filter(name))
        ggmlx::fail(ggmlx::ErrorKind::Unsupported, "the filter '{}' is not supported in chat templates", name);
    if (!filter) refuse("there is no filter named '{}'", name);
    return filter(runtime, input, arguments);
}

Value attribute_path(Runtime& runtime, const Value& value, const Value& path) {
    if (path.is_none() || path.is_undefined()) return value;
    if (!path.is_string()) return get_item(runtime, value, path);
    Value result = value;
    std::string_view rest = path.str();
    while (true) {
        const size_t dot = std::min(rest.find('.'), rest.size());
        result = get_item(runtime, result, path_part(runtime, rest.substr(0, dot)));
        if (dot == rest.size()) return result;
        rest.remove_prefix(dot + 1);
    }
}

}  // namespace llm::jinja
