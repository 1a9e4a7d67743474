// Methods of strings that look for something in them.

#include <algorithm>
#include <optional>

#include "src/chat/access.h"
#include "src/chat/arguments.h"
#include "src/chat/compare.h"
#include "src/chat/method_table.h"
#include "src/chat/methods.h"
#include "src/chat/operators.h"
#include "src/chat/strings.h"

namespace llm::jinja {
namespace {

/// The part of a text between two character positions, as Python's optional start and end mean them; in bytes.
struct Window {
    size_t begin = 0, end = 0;
    bool valid = true;  ///< false: start lies behind the end
};

int64_t bound_at(const Bound& bound, size_t i, int64_t otherwise, int64_t size) {
    if (!bound.is_set(i)) return otherwise;
    const int64_t given = bound.integer_or(i, otherwise);
    return given < 0 ? std::max<int64_t>(given + size, 0) : given;
}

Window window_of(const Text& text, const Bound& bound, size_t first) {
    const auto size = static_cast<int64_t>(text.n_chars);
    const int64_t start = bound_at(bound, first, 0, size),
                  stop = std::min(bound_at(bound, first + 1, size, size), size);
    if (start > stop) return {0, 0, false};
    return {text.byte_of(static_cast<size_t>(start)), text.byte_of(static_cast<size_t>(stop)), true};
}

std::string_view inside(const Text& text, const Window& w) {
    return std::string_view(text.bytes).substr(w.begin, w.end - w.begin);
}

std::optional<size_t> last_occurrence(Runtime& runtime, std::string_view text, std::string_view part) {
    runtime.spend_bytes(text.size() + part.size());
    if (part.empty()) return text.size();
    std::optional<size_t> last;
    for (size_t at = 0; (at = find_bytes(text, part, at)) != text.npos; ++at) {
        runtime.spend(1 + part.size() / 64);
        last = at;
    }
    return last;
}

template <bool from_right, bool must_exist>
Value position(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("find", arguments, {"sub", "start", "end"}, 1);
    const Text& text = self.text();
    const std::string& part = bound.text(0).bytes;
    const Window w = window_of(text, bound, 1);
    std::optional<size_t> found;
    if (w.valid && from_right) {
        found = last_occurrence(runtime, inside(text, w), part);
    } else if (w.valid) {
        runtime.spend_bytes(text.bytes.size() + part.size());
        const size_t at = find_bytes(inside(text, w), part, 0);
        if (at != std::string::npos) found = at;
    }
    if (!found && must_exist) refuse("substring not found");
    if (!found) return int64_t{-1};
    return static_cast<int64_t>(count_chars(std::string_view(text.bytes).substr(0, w.begin + *found)));
}

Value count(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("count", arguments, {"sub", "start", "end"}, 1);
    const std::string& part = bound.text(0).bytes;
    const Window w = window_of(self.text(), bound, 1);
    const std::string_view text = inside(self.text(), w);
    if (!w.valid) return int64_t{0};
    if (part.empty()) return static_cast<int64_t>(count_chars(text)) + 1;
    runtime.spend_bytes(text.size() + part.size());
    int64_t n = 0;
    for (size_t at = 0; (at = find_bytes(text, part, at)) != text.npos; at += part.size()) ++n;
    return n;
}

template <bool at_end>
Value has_affix(Runtime& runtime, const Value& self, Arguments& arguments) {
    const std::string_view name = at_end ? "endswith" : "startswith";
    const Bound bound(name, arguments, {"affix", "start", "end"}, 1);
    const Window w = window_of(self.text(), bound, 1);
    const std::string_view text = inside(self.text(), w);
    const auto fits = [&](const Value& affix) {
        require_defined(affix);
        if (!affix.is_string()) refuse("{} first arg must be str or a tuple of str, not {}", name, type_name(affix));
        runtime.spend_bytes(affix.str().size());
        return w.valid && (at_end ? text.ends_with(affix.str()) : text.starts_with(affix.str()));
    };
    if (!is_list_type(bound.value(0), ListType::Tuple)) return fits(bound.value(0));
    const auto& affixes = bound.value(0).as<List>()->items;
    return std::any_of(affixes.begin(), affixes.end(), fits);
}

Value replaced(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("replace", arguments, {"old", "new", "count"}, 2);
    const Text& text = self.text();
    const Text old = text.markup ? escape_html(bound.text(0)) : bound.text(0);
    const Text with = text.markup ? escape_html(bound.text(1)) : bound.text(1);
    return like(runtime, replace(runtime, text, old.bytes, with, bound.integer_or(2, -1)), text);
}

Value joined(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("join", arguments, {"iterable"}, 1);
    require_defined(bound.value(0));
    return runtime.string(join(runtime, self.text(), items_of(runtime, bound.value(0))));
}

Value formatted(Runtime& runtime, const Value& self, Arguments& arguments) {
    return like(runtime, format_braces(runtime, self.text(), arguments), self.text());
}

}  // namespace

Method find_string_search_method(std::string_view name) {
    static constexpr std::pair<std::string_view, Method> kMethods[] = {
        {"startswith", has_affix<false>},
        {"endswith", has_affix<true>},
        {"replace", replaced},
        {"find", position<false, false>},
        {"rfind", position<true, false>},
        {"index", position<false, true>},
        {"rindex", position<true, true>},
        {"count", count},
        {"join", joined},
        {"format", formatted},
    };
    return find_in(kMethods, name);
}

}  // namespace llm::jinja
