// Filters that make text of something.

#include <algorithm>

#include "src/chat/access.h"
#include "src/chat/arguments.h"
#include "src/chat/characters.h"
#include "src/chat/compare.h"
#include "src/chat/filters.h"
#include "src/chat/method_table.h"
#include "src/chat/operators.h"
#include "src/chat/python_text.h"
#include "src/chat/strings.h"
#include "src/tokenizer/unicode.h"
#include "src/tokenizer/utf8.h"

namespace llm::jinja {
namespace {

template <Text (*convert)(const Text&)>
Value case_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("filter", arguments, {});
    const TextPtr text = to_string(runtime, input);
    runtime.spend_bytes(16 * text->bytes.size());
    return runtime.string(convert(*text));
}

bool begins_word(char32_t c) { return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c); }

/// Every part between separators with a capital first letter.
Value title_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("title", arguments, {});
    const TextPtr text = to_string(runtime, input);
    runtime.spend_bytes(16 * text->bytes.size());
    const auto piece = [&](size_t begin, size_t end) {
        TextBuilder out;
        out.append(*text, begin, end);
        return out.take();
    };
    TextBuilder out;
    for (size_t at = 0; at < text->bytes.size();) {
        const CodePoint first = code_point_at(text->bytes, at);
        const bool separator = begins_word(first.value);
        size_t end = at + first.size;
        while (end < text->bytes.size() && begins_word(code_point_at(text->bytes, end).value) == separator)
            end += code_point_at(text->bytes, end).size;
        out.append(upper(piece(at, at + first.size)));
        out.append(lower(piece(at + first.size, end)));
        at = end;
    }
    return runtime.string(out.take());
}

Value trim_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("trim", arguments, {"chars"});
    const auto chars = bound.is_set(0) ? std::optional<std::string_view>(bound.text(0).bytes) : std::nullopt;
    return runtime.string(strip(runtime, *to_string(runtime, input), chars, true, true));
}

Value string_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("string", arguments, {});
    return to_string(runtime, input);
}

Value safe_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("safe", arguments, {});
    Text text = to_text(runtime, input);
    text.markup = true;
    return runtime.string(std::move(text));
}

template <bool force>
Value escape_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("escape", arguments, {});
    Text text = to_text(runtime, input);
    if (force) text.markup = false;
    runtime.reserve(6 * text.bytes.size());
    return runtime.string(escape_html(text));
}

Value replace_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("replace", arguments, {"old", "new", "count"}, 2);
    const TextPtr old = to_string(runtime, bound.value(0)), with = to_string(runtime, bound.value(1));
    const int64_t count = bound.is_set(2) ? bound.integer_or(2, -1) : -1;
    return runtime.string(replace(runtime, *to_string(runtime, input), old->bytes, *with, count));
}

Value center_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("center", arguments, {"width"});
    const TextPtr text = to_string(runtime, input);
    const int64_t width = bound.integer_or(0, 80);
    const auto size = static_cast<int64_t>(text->n_chars);
    if (width <= size) return text;
    const auto room = static_cast<size_t>(width - size);
    const size_t before = room / 2 + (room & static_cast<size_t>(width) & 1);
    return like(runtime, pad(runtime, *text, before, room - before, Text(" ")), *text);
}

Value format_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    if (!arguments.positional.empty() && !arguments.named.empty())
        refuse("format: give arguments by position or by name, not both");
    Value values = runtime.list(arguments.positional, ListType::Tuple);
    if (!arguments.named.empty()) {
        Dict* dict = runtime.dict();
        for (const auto& [name, value] : arguments.named) dict->set(runtime, runtime.string(name), value);
        values = dict;
    }
    return runtime.string(format_percent(runtime, *to_string(runtime, input), values));
}

Value indent_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("indent", arguments, {"width", "first", "blank"});
    require_defined(input);
    if (!input.is_string()) refuse("indent: the value must be str, not {}", type_name(input));
    const bool blank = bound.truth_or(2, false);
    Text indention(" ");
    if (bound.has(0) && bound.value(0).is_string())
        indention = bound.text(0);
    else
        indention =
            pad(runtime, Text(), static_cast<size_t>(std::max<int64_t>(bound.integer_or(0, 4), 0)), 0, indention);
    TextBuilder with_newline, out;
    with_newline.append(input.text());
    with_newline.append("\n");
    const std::vector<Text> lines = split_lines(with_newline.take(), false);
    if (bound.truth_or(1, false)) out.append(indention);
    for (size_t i = 0; i < lines.size(); ++i) {
        runtime.spend(1);
        runtime.spend_bytes(indention.bytes.size() + lines[i].bytes.size());
        runtime.reserve(out.size() + indention.bytes.size() + lines[i].bytes.size());
        if (i > 0) out.append("\n");
        if (i > 0 && (blank || !lines[i].bytes.empty())) out.append(indention);
        out.append(lines[i]);
    }
    return like(runtime, out.take(), input.text());
}

Value truncate_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("truncate", arguments, {"length", "killwords", "end", "leeway"});
    const auto size = length_of(input);
    if (!size) refuse("object of type '{}' has no len()", type_name(input));
    const Text end = bound.has(2) ? bound.text(2) : Text("...");
    const int64_t length = bound.integer_or(0, 255), leeway = bound.is_set(3) ? bound.integer_or(3, 5) : 5;
    const int64_t kept = length - static_cast<int64_t>(end.n_chars);
    if (kept < 0) refuse("expected length >= {}, got {}", end.n_chars, length);
    if (leeway < 0) refuse("expected leeway >= 0, got {}", leeway);
    if (*size <= static_cast<uint64_t>(length) + static_cast<uint64_t>(leeway)) return input;
    if (!input.is_string()) refuse("truncate: the value must be str, not {}", type_name(input));
    const Text& text = input.text();
    const Text head = characters(text, 0, static_cast<size_t>(kept));
    const size_t space = bound.truth_or(1, false) ? head.bytes.npos : head.bytes.rfind(' ');
    TextBuilder out;
    out.append(head, 0, std::min(space, head.bytes.size()));
    out.append(end);
    return like(runtime, out.take(), text);
}

Value word_count(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("wordcount", arguments, {});
    const TextPtr text = to_string(runtime, input);
    runtime.spend_bytes(16 * text->bytes.size());
    int64_t n = 0;
    bool in_word = false;
    for (size_t at = 0; at < text->bytes.size();) {
        const CodePoint c = code_point_at(text->bytes, at);
        const bool word = is_alnum(c.value) || c.value == '_';
        n += word && !in_word;
        in_word = word;
        at += c.size;
    }
    return n;
}

Value join_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("join", arguments, {"d", "attribute"});
    const Text separator = bound.has(0) ? to_text(runtime, bound.value(0)) : Text();
    std::vector<Value> texts;
    for (const Value& item : items_of(runtime, input))
        texts.emplace_back(to_string(runtime, attribute_path(runtime, item, bound.value_or(1, None{}))));
    Text plain = separator;
    plain.markup = false;
    return runtime.string(join(runtime, plain, texts));
}

JsonStyle json_style(Runtime& runtime, const Bound& bound) {
    JsonStyle style;
    style.ensure_ascii = bound.truth_or(0, false);
    if (bound.is_set(1)) {
        if (bound.value(1).is_string())
            style.indent = bound.text(1).bytes;
        else
            style.indent = std::string(static_cast<size_t>(std::clamp<int64_t>(bound.integer_or(1, 0), 0, 1000)), ' ');
    }
    style.item_separator = Text(style.indent ? "," : ", ");
    style.key_separator = Text(": ");
    if (bound.is_set(2)) {
        const auto separators = items_of(runtime, bound.value(2));
        if (separators.size() != 2 || !separators[0].is_string() || !separators[1].is_string())
            refuse("tojson: separators must be two strings");
        style.item_separator = separators[0].text();
        style.key_separator = separators[1].text();
    }
    style.sort_keys = bound.truth_or(3, false);
    return style;
}

Value tojson_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
    return runtime.string(to_json(runtime, input, json_style(runtime, bound)));
}

}  // namespace

Filter find_text_filter(std::string_view name) {
    static constexpr std::pair<std::string_view, Filter> kFilters[] = {
        {"capitalize", case_filter<capitalize>},
        {"center", center_filter},
        {"e", escape_filter<false>},
        {"escape", escape_filter<false>},
        {"forceescape", escape_filter<true>},
        {"format", format_filter},
        {"indent", indent_filter},
        {"join", join_filter},
        {"lower", case_filter<lower>},
        {"replace", replace_filter},
        {"safe", safe_filter},
        {"string", string_filter},
        {"title", title_filter},
        {"tojson", tojson_filter},
        {"trim", trim_filter},
        {"truncate", truncate_filter},
        {"upper", case_filter<upper>},
        {"wordcount", word_count},
    };
    return find_in(kFilters, name);
}

}  // namespace llm::jinja
