// Methods of strings that change case, cut or pad, and that ask what a string is made of.

#include <algorithm>

#include "src/chat/arguments.h"
#include "src/chat/characters.h"
#include "src/chat/method_table.h"
#include "src/chat/methods.h"
#include "src/chat/strings.h"
#include "src/tokenizer/utf8.h"

namespace llm::jinja {
namespace {

template <Text (*convert)(const Text&)>
Value converted(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("str method", arguments, {});
    runtime.spend_bytes(16 * self.str().size());
    return runtime.string(convert(self.text()));
}

template <bool left, bool right>
Value stripped(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("strip", arguments, {"chars"});
    const auto chars = bound.is_set(0) ? std::optional<std::string_view>(bound.text(0).bytes) : std::nullopt;
    return runtime.string(strip(runtime, self.text(), chars, left, right));
}

template <bool suffix>
Value without_affix(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound(suffix ? "removesuffix" : "removeprefix", arguments, {"affix"}, 1);
    const Text& text = self.text();
    const std::string& affix = bound.text(0).bytes;
    const size_t n = text.bytes.size();
    TextBuilder out;
    if (suffix)
        out.append(text, 0, text.bytes.ends_with(affix) ? n - affix.size() : n);
    else
        out.append(text, text.bytes.starts_with(affix) ? affix.size() : 0, n);
    return like(runtime, out.take(), text);
}

enum class Side { Left, Right, Center };

template <Side side>
Value padded(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("just", arguments, {"width", "fillchar"}, 1);
    const Text& text = self.text();
    const Text fill = bound.has(1) ? bound.text(1) : Text(" ");
    if (fill.n_chars != 1) refuse("The fill character must be exactly one character long");
    const int64_t width = bound.integer_or(0, 0);
    const auto size = static_cast<int64_t>(text.n_chars);
    if (width <= size) return self;
    const auto room = static_cast<size_t>(width - size);
    if (side == Side::Left) return like(runtime, pad(runtime, text, 0, room, fill), text);
    if (side == Side::Right) return like(runtime, pad(runtime, text, room, 0, fill), text);
    const size_t before = room / 2 + (room & static_cast<size_t>(width) & 1);  // where Python puts the odd one
    return like(runtime, pad(runtime, text, before, room - before, fill), text);
}

Value zero_filled(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("zfill", arguments, {"width"}, 1);
    const Text& text = self.text();
    const int64_t room = bound.integer_or(0, 0) - static_cast<int64_t>(text.n_chars);
    if (room <= 0) return self;
    const size_t sign = !text.bytes.empty() && (text.bytes[0] == '-' || text.bytes[0] == '+') ? 1 : 0;
    TextBuilder rest, out;
    rest.append(text, sign, text.bytes.size());
    out.append(text, 0, sign);
    out.append(pad(runtime, rest.take(), static_cast<size_t>(room), 0, Text("0")));
    return like(runtime, out.take(), text);
}

Value tabs_expanded(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("expandtabs", arguments, {"tabsize"});
    const int64_t tab = bound.integer_or(0, 8);
    const Text& text = self.text();
    TextBuilder out;
    int64_t column = 0;
    for (size_t at = 0; at < text.bytes.size();) {
        const CodePoint c = code_point_at(text.bytes, at);
        if (c.value == '\t') {
            const int64_t n = tab > 0 ? tab - column % tab : 0;
            runtime.reserve(out.size() + static_cast<size_t>(n));
            runtime.spend_bytes(static_cast<size_t>(n));
            out.append(std::string(static_cast<size_t>(n), ' '), text.origin_at(at));
            column += n;
        } else {
            out.append(text, at, at + c.size);
            column = c.value == '\n' || c.value == '\r' ? 0 : column + 1;
        }
        at += c.size;
    }
    return like(runtime, out.take(), text);
}

/// All characters pass and there is at least one.
template <bool (*passes)(char32_t)>
Value all_characters(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("str method", arguments, {});
    const std::string& text = self.str();
    runtime.spend_bytes(8 * text.size());
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        if (!passes(c.value)) return false;
        at += c.size;
    }
    return !text.empty();
}

/// No cased character of the other kind, and at least one of this.
template <bool upper>
Value all_cased(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("str method", arguments, {});
    const std::string& text = self.str();
    runtime.spend_bytes(8 * text.size());
    bool any = false;
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        const bool is_upper = is_upper_char(c.value), is_lower = is_lower_char(c.value);
        if (is_title_char(c.value) || (upper ? is_lower : is_upper)) return false;
        any = any || (upper ? is_upper : is_lower);
        at += c.size;
    }
    return any;
}

Value is_title(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("istitle", arguments, {});
    const std::string& text = self.str();
    runtime.spend_bytes(8 * text.size());
    bool any = false, in_word = false;
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        const bool begins = is_upper_char(c.value) || is_title_char(c.value);
        if ((begins && in_word) || (!begins && is_lower_char(c.value) && !in_word)) return false;
        in_word = begins || is_lower_char(c.value);
        any = any || in_word;
        at += c.size;
    }
    return any;
}

Value is_ascii_text(Runtime&, const Value& self, Arguments& arguments) {
    const Bound bound("isascii", arguments, {});
    return self.text().is_ascii();
}

Value is_printable_text(Runtime& runtime, const Value& self, Arguments& arguments) {
    return self.str().empty() ? Value(true) : all_characters<is_printable>(runtime, self, arguments);
}

}  // namespace

Method find_string_method(std::string_view name) {
    static constexpr std::pair<std::string_view, Method> kMethods[] = {
        {"strip", stripped<true, true>},
        {"lstrip", stripped<true, false>},
        {"rstrip", stripped<false, true>},
        {"lower", converted<lower>},
        {"upper", converted<upper>},
        {"title", converted<title>},
        {"capitalize", converted<capitalize>},
        {"swapcase", converted<swap_case>},
        {"casefold", converted<fold_case>},
        {"removeprefix", without_affix<false>},
        {"removesuffix", without_affix<true>},
        {"ljust", padded<Side::Left>},
        {"rjust", padded<Side::Right>},
        {"center", padded<Side::Center>},
        {"zfill", zero_filled},
        {"expandtabs", tabs_expanded},
        {"isalpha", all_characters<is_alpha>},
        {"isalnum", all_characters<is_alnum>},
        {"isdecimal", all_characters<is_decimal>},
        {"isdigit", all_characters<is_digit>},
        {"isspace", all_characters<is_space>},
        {"isprintable", is_printable_text},
        {"isascii", is_ascii_text},
        {"islower", all_cased<false>},
        {"isupper", all_cased<true>},
        {"istitle", is_title},
    };
    return find_in(kMethods, name);
}

}  // namespace llm::jinja
