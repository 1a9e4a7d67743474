// "{} and {name:>8}".format(…), as Python's str does it.

#include <algorithm>
#include <charconv>

#include "src/chat/access.h"
#include "src/chat/compare.h"
#include "src/chat/number_format.h"
#include "src/chat/operators.h"
#include "src/chat/python_text.h"
#include "src/tokenizer/utf8.h"

namespace llm::jinja {
namespace {

FormatSpec parse_spec(std::string_view text) {
    FormatSpec spec;
    const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
    const auto take = [&](std::string_view any) {
        if (text.empty() || any.find(text[0]) == any.npos) return '\0';
        const char c = text[0];
        text.remove_prefix(1);
        return c;
    };
    const auto number = [&] {
        int64_t value = 0;
        while (const char digit = take("0123456789")) {
            value = value * 10 + (digit - '0');
            check_format_size(value);
        }
        return value;
    };
    const size_t first = text.empty() ? 0 : code_point_at(text, 0).size;
    if (first < text.size() && first > 0 && is_align(text[first])) {
        spec.fill = std::string(text.substr(0, first));
        text.remove_prefix(first);
    }
    spec.align = take("<>^=");
    if (const char sign = take("+- ")) spec.sign = sign;
    spec.alternate = take("#") != '\0';
    if (take("0") && !spec.align) {
        spec.fill.assign(1, '0');
        spec.align = '=';
    }
    spec.width = number();
    spec.grouping = take(",_");
    if (take(".")) spec.precision = number();
    if (text.size() > 1) refuse("Invalid format specifier");
    if (!text.empty()) spec.type = text[0];
    return spec;
}

Text formatted(Runtime& runtime, const Value& value, std::string_view spec_text) {
    if (spec_text.empty()) return to_text(runtime, value);
    FormatSpec spec = parse_spec(spec_text);
    const bool as_float = std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos && spec.type;
    if (value.is_number() && (value.is_float() || as_float))
        return pad_to_width(runtime, Text(format_float(value.number(), spec)), spec, '>');
    if (value.is_int() || (value.is_bool() && spec.type))
        return pad_to_width(runtime, Text(format_int(value.integer(), spec)), spec, '>');
    if (!value.is_string() && !value.is_bool())
        refuse("unsupported format string passed to {}.__format__", type_name(value));
    if (spec.type && spec.type != 's')
        refuse("Unknown format code '{}' for object of type '{}'", spec.type, type_name(value));
    if (spec.align == '=' && spec.fill != "0") refuse("'=' alignment not allowed in string format specifier");
    Text text = to_text(runtime, value);
    if (spec.precision && static_cast<size_t>(*spec.precision) < text.n_chars)
        text = characters(text, 0, static_cast<size_t>(*spec.precision));
    if (spec.align == '=') spec.align = '<';
    return pad_to_width(runtime, text, spec, '<');
}

class BraceFormatter {
  public:
    BraceFormatter(Runtime& runtime, const Text& format, const Arguments& arguments)
        : runtime_(runtime), format_(format), arguments_(arguments) {}
    Text run();

  private:
    Runtime& runtime_;
    const Text& format_;
    const Arguments& arguments_;
    size_t next_ = 0;
    TextBuilder out_;

    void field(std::string_view text);
    Value root(std::string_view name);
    Value resolve(std::string_view path);
    /// A specification may hold fields itself, one level deep: {:{width}}.
    std::string expand_spec(std::string_view spec);
};

Value BraceFormatter::root(std::string_view name) {
    size_t index = next_;
    if (name.empty()) {
        ++next_;
    } else if (std::from_chars(name.data(), name.data() + name.size(), index).ptr != name.data() + name.size()) {
        for (const auto& [key, value] : arguments_.named)
            if (key == name) return value;
        refuse("format() has no argument {}", repr_of_text(name));
    }
    if (index >= arguments_.positional.size()) refuse("Replacement index {} out of range", index);
    return arguments_.positional[index];
}

/// name, then .attribute and [key].
Value BraceFormatter::resolve(std::string_view path) {
    const size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = root(path.substr(0, end));
    path.remove_prefix(end);
    while (!path.empty()) {
        const bool item = path[0] == '[';
        const size_t stop = item ? path.find(']') : std::min(path.find_first_of(".[", 1), path.size());
        if (stop == path.npos) refuse("Missing ']' in format string");
        const std::string_view name = path.substr(1, stop - 1);
        int64_t index = 0;
        const bool is_index =
            item && !name.empty() &&
            std::from_chars(name.data(), name.data() + name.size(), index).ptr == name.data() + name.size();
        value = is_index ? get_item(runtime_, value, Value(index))
                : item   ? get_item(runtime_, value, runtime_.string(std::string(name)))
                         : get_attribute(runtime_, value, name);
        path.remove_prefix(stop + (item ? 1 : 0));
    }
    require_defined(value);
    return value;
}

std::string BraceFormatter::expand_spec(std::string_view spec) {
    std::string result;
    for (size_t open; (open = spec.find('{')) != spec.npos;) {
        const size_t close = spec.find('}', open);
        if (close == spec.npos) refuse("expected '}}' before end of string");
        result += spec.substr(0, open);
        result += to_text(runtime_, resolve(spec.substr(open + 1, close - open - 1))).bytes;
        spec.remove_prefix(close + 1);
    }
    return result += spec;
}

void BraceFormatter::field(std::string_view text) {
    const size_t colon = std::min(text.find(':'), text.size());
    std::string_view path = text.substr(0, colon);
    const size_t bang = path.find('!');
    const std::string_view conversion = bang == path.npos ? "" : path.substr(bang + 1);
    if (!conversion.empty() && conversion != "s" && conversion != "r")
        refuse("the conversion '!{}' is not supported", conversion);
    Value value = resolve(path.substr(0, bang));
    if (conversion == "r") {
        TextBuilder repr;
        append_repr(runtime_, value, repr);
        value = runtime_.string(repr.take());
    } else if (conversion == "s") {
        value = to_string(runtime_, value);
    }
    const std::string spec = colon < text.size() ? expand_spec(text.substr(colon + 1)) : "";
    append_joined(out_, formatted(runtime_, value, spec), format_.markup);
}

Text BraceFormatter::run() {
    const std::string_view text = format_.bytes;
    for (size_t at = 0; at < text.size();) {
        const size_t brace = std::min(text.find_first_of("{}", at), text.size());
        runtime_.spend(1);
        runtime_.reserve(out_.size() + brace - at);
        out_.append(format_, at, brace);
        if (brace == text.size()) break;
        if (text.substr(brace + 1, 1) == text.substr(brace, 1)) {  // {{ or }}
            out_.append(format_, brace, brace + 1);
            at = brace + 2;
            continue;
        }
        if (text[brace] == '}') refuse("Single '}}' encountered in format string");
        size_t close = brace + 1;
        for (int open = 1; close < text.size(); ++close) {
            if (text[close] == '{') ++open;
            if (text[close] == '}' && --open == 0) break;
        }
        if (close >= text.size()) refuse("expected '}}' before end of string");
        field(text.substr(brace + 1, close - brace - 1));
        at = close + 1;
    }
    return out_.take();
}

}  // namespace

Text format_braces(Runtime& runtime, const Text& format, const Arguments& arguments) {
    return BraceFormatter(runtime, format, arguments).run();
}

}  // namespace llm::jinja
