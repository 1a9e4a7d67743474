#include "src/chat/python_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "src/chat/characters.h"
#include "src/tokenizer/utf8.h"

namespace llm::jinja {
namespace {

/// Quotes as Python does: single ones, unless only they occur in the text.
char quote_for(std::string_view text) {
    return text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
}

void append_escaped(char32_t c, char quote, std::string& out) {
    const auto value = static_cast<uint32_t>(c);
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
        out += '\\';
        out += static_cast<char>(c);
    } else if (c == '\n') {
        out += "\\n";
    } else if (c == '\r') {
        out += "\\r";
    } else if (c == '\t') {
        out += "\\t";
    } else if (is_printable(c)) {
        append_utf8(out, c);
    } else {
        out += value < 0x100     ? fmt::format("\\x{:02x}", value)
               : value < 0x10000 ? fmt::format("\\u{:04x}", value)
                                 : fmt::format("\\U{:08x}", value);
    }
}

void append_text_repr(const Text& text, TextBuilder& out) {
    const char quote = quote_for(text.bytes);
    const std::string_view quotes(&quote, 1);
    if (text.markup) out.append("Markup(");
    out.append(quotes);
    std::string escaped;
    for (size_t at = 0; at < text.bytes.size();) {
        const CodePoint c = code_point_at(text.bytes, at);
        escaped.clear();
        append_escaped(c.value, quote, escaped);
        out.append(escaped, text.origin_at(at));
        at += c.size;
    }
    out.append(quotes);
    if (text.markup) out.append(")");
}

void append_items(Runtime& runtime, const std::vector<Value>& items, TextBuilder& out) {
    for (size_t i = 0; i < items.size(); ++i) {
        if (i > 0) out.append(", ");
        append_repr(runtime, items[i], out);
    }
}

void append_dict(Runtime& runtime, const Dict& dict, TextBuilder& out) {
    out.append("{");
    for (size_t i = 0; i < dict.entries.size(); ++i) {
        if (i > 0) out.append(", ");
        append_repr(runtime, dict.entries[i].first, out);
        out.append(": ");
        append_repr(runtime, dict.entries[i].second, out);
    }
    out.append("}");
}

void append_list(Runtime& runtime, const List& list, TextBuilder& out) {
    if (list.type == ListType::Range) {
        out.append(list.step == 1 ? fmt::format("range({}, {})", list.start, list.stop)
                                  : fmt::format("range({}, {}, {})", list.start, list.stop, list.step));
        return;
    }
    const bool tuple = list.type == ListType::Tuple, view = !tuple && list.type != ListType::List;
    if (view) out.append(fmt::format("{}(", type_name(const_cast<List*>(&list))));
    out.append(tuple ? "(" : "[");
    append_items(runtime, list.items, out);
    if (tuple && list.items.size() == 1) out.append(",");
    out.append(tuple ? ")" : "]");
    if (view) out.append(")");
}

void append_object(Runtime& runtime, const Value& value, TextBuilder& out) {
    const Runtime::Level level(runtime);
    if (const List* list = value.as<List>()) {
        append_list(runtime, *list, out);
    } else if (const Dict* dict = value.as<Dict>()) {
        append_dict(runtime, *dict, out);
    } else if (const Namespace* space = value.as<Namespace>()) {
        out.append("<Namespace ");
        append_dict(runtime, space->attributes, out);
        out.append(">");
    } else {
        const std::string repr = value.object()->repr();
        out.append(repr.empty() ? fmt::format("<{}>", type_name(value)) : repr);
    }
}

}  // namespace

std::string repr_of_float(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    std::array<char, 32> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
    const std::string shortest(buffer.data(), end.ptr);  // d.ddde+XX
    const size_t e = shortest.find('e');
    const int exponent = std::stoi(shortest.substr(e + 1));
    if (exponent < -4 || exponent >= 16) return shortest;
    const auto fixed = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
    std::string text(buffer.data(), fixed.ptr);
    if (text.find('.') == text.npos) text += ".0";
    return text;
}

std::string repr_of_text(std::string_view text) {
    TextBuilder out;
    append_text_repr(Text(std::string(text)), out);
    return out.take().bytes;
}

void append_repr(Runtime& runtime, const Value& value, TextBuilder& out) {
    runtime.spend(1);
    if (value.is_string()) {
        runtime.spend_bytes(value.str().size());
        runtime.reserve(out.size() + value.str().size());
        append_text_repr(value.text(), out);
    } else if (value.is_undefined()) {
        out.append("Undefined");
    } else if (value.is_none()) {
        out.append("None");
    } else if (value.is_bool()) {
        out.append(value.boolean() ? "True" : "False");
    } else if (value.is_int()) {
        out.append(std::to_string(value.integer()));
    } else if (value.is_float()) {
        out.append(repr_of_float(value.real()));
    } else {
        append_object(runtime, value, out);
    }
}

Text to_text(Runtime& runtime, const Value& value) {
    if (value.is_string()) return value.text();
    TextBuilder out;
    if (!value.is_undefined()) append_repr(runtime, value, out);
    return out.take();
}

TextPtr to_string(Runtime& runtime, const Value& value) {
    return value.is_string() ? value.text_ptr() : runtime.string(to_text(runtime, value));
}

}  // namespace llm::jinja
