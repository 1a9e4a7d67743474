// json.dumps(), as Python prints it.

#include <algorithm>
#include <cmath>

#include "src/chat/compare.h"
#include "src/chat/python_text.h"
#include "src/tokenizer/utf8.h"

namespace llm::jinja {
namespace {

void append_unit(uint32_t utf16, std::string& out) { out += fmt::format("\\u{:04x}", utf16); }

void append_json_char(char32_t c, bool ensure_ascii, std::string& out) {
    constexpr std::string_view kShort = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
    const auto value = static_cast<uint32_t>(c);
    if (const size_t i = c < 0x80 ? kShort.find(static_cast<char>(c)) : kShort.npos; i != kShort.npos) {
        out += '\\';
        out += kLetters[i];
    } else if (value < 0x20 || (ensure_ascii && value > 0x7F && value < 0x10000)) {
        append_unit(value, out);
    } else if (ensure_ascii && value >= 0x10000) {
        append_unit(0xD800 + ((value - 0x10000) >> 10), out);
        append_unit(0xDC00 + ((value - 0x10000) & 0x3FF), out);
    } else {
        append_utf8(out, c);
    }
}

class JsonWriter {
  public:
    JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}
    void write(const Value& value);
    Text take() { return out_.take(); }

  private:
    Runtime& runtime_;
    const JsonStyle& style_;
    TextBuilder out_;
    size_t level_ = 0;

    void write_string(const Text& text);
    void write_key(const Value& key);
    void write_number(const Value& value);
    void write_list(const List& list);
    void write_dict(const Dict& dict);
    void new_line();
    void between(bool first);
};

void JsonWriter::write_string(const Text& text) {
    runtime_.spend_bytes(text.bytes.size());
    runtime_.reserve(out_.size() + text.bytes.size());
    out_.append("\"");
    std::string escaped;
    for (size_t at = 0; at < text.bytes.size();) {
        const CodePoint c = code_point_at(text.bytes, at);
        escaped.clear();
        append_json_char(c.value, style_.ensure_ascii, escaped);
        out_.append(escaped, text.origin_at(at));
        at += c.size;
    }
    out_.append("\"");
}

void JsonWriter::new_line() {
    if (!style_.indent) return;
    runtime_.reserve(out_.size() + level_ * style_.indent->size());
    runtime_.spend_bytes(level_ * style_.indent->size());
    out_.append("\n");
    for (size_t i = 0; i < level_; ++i) out_.append(*style_.indent);
}

void JsonWriter::between(bool first) {
    if (!first) out_.append(style_.item_separator);
    new_line();
}

void JsonWriter::write_number(const Value& value) {
    if (value.is_int()) {
        out_.append(std::to_string(value.integer()));
    } else if (std::isnan(value.real())) {
        out_.append("NaN");
    } else if (std::isinf(value.real())) {
        out_.append(value.real() < 0 ? "-Infinity" : "Infinity");
    } else {
        out_.append(repr_of_float(value.real()));
    }
}

void JsonWriter::write_key(const Value& key) {
    if (key.is_string()) {
        write_string(key.text());
    } else if (key.is_number() || key.is_none()) {
        out_.append("\"");
        write(key);
        out_.append("\"");
    } else {
        refuse("keys must be str, int, float, bool or None, not {}", type_name(key));
    }
}

void JsonWriter::write_list(const List& list) {
    if (list.items.empty()) return out_.append("[]");
    out_.append("[");
    ++level_;
    for (size_t i = 0; i < list.items.size(); ++i) {
        between(i == 0);
        write(list.items[i]);
    }
    --level_;
    new_line();
    out_.append("]");
}

void JsonWriter::write_dict(const Dict& dict) {
    if (dict.entries.empty()) return out_.append("{}");
    std::vector<std::pair<Value, Value>> sorted;
    if (style_.sort_keys) {
        sorted = dict.entries;
        std::stable_sort(sorted.begin(), sorted.end(),
                         [&](const auto& a, const auto& b) { return less(runtime_, a.first, b.first); });
    }
    const auto& entries = style_.sort_keys ? sorted : dict.entries;
    out_.append("{");
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
        between(i == 0);
        write_key(entries[i].first);
        out_.append(style_.key_separator);
        write(entries[i].second);
    }
    --level_;
    new_line();
    out_.append("}");
}

void JsonWriter::write(const Value& value) {
    runtime_.spend(1);
    if (value.is_string()) return write_string(value.text());
    if (value.is_none()) return out_.append("null");
    if (value.is_bool()) return out_.append(value.boolean() ? "true" : "false");
    if (value.is_number()) return write_number(value);
    const Runtime::Level level(runtime_);
    const List* list = value.as<List>();
    if (list && (list->type == ListType::List || list->type == ListType::Tuple)) return write_list(*list);
    if (const Dict* dict = value.as<Dict>()) return write_dict(*dict);
    refuse("Object of type {} is not JSON serializable", type_name(value));
}

}  // namespace

Text to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
    JsonWriter writer(runtime, style);
    writer.write(value);
    return writer.take();
}

}  // namespace llm::jinja
