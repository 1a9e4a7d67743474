#include "src/chat/strings.h"

#include <cstring>

#include "src/chat/characters.h"
#include "src/chat/compare.h"
#include "src/chat/operators.h"
#include "src/tokenizer/utf8.h"

namespace llm::jinja {
namespace {

bool is_line_end(char32_t c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

Text part(const Text& text, size_t begin, size_t end) {
    TextBuilder out;
    out.append(text, begin, end);
    Text result = out.take();
    result.markup = text.markup;
    return result;
}

/// Puts `with` before every character and at the end, as replacing the empty string does.
Text interleave(Runtime& runtime, const Text& text, const Text& with, size_t count) {
    TextBuilder out;
    size_t at = 0;
    for (; count > 0; --count) {
        runtime.spend(1);
        runtime.reserve(out.size() + with.bytes.size());
        out.append(with);
        if (at == text.bytes.size()) break;
        const size_t next = at + code_point_at(text.bytes, at).size;
        out.append(text, at, next);
        at = next;
    }
    out.append(text, at, text.bytes.size());
    return out.take();
}

}  // namespace

size_t find_bytes(std::string_view text, std::string_view part, size_t from) {
    if (from > text.size()) return std::string_view::npos;
    const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
    return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

Text strip(Runtime& runtime, const Text& text, std::optional<std::string_view> chars, bool left, bool right) {
    const std::string_view bytes = text.bytes;
    size_t begin = 0, end = bytes.size();
    const auto goes = [&](CodePoint c, size_t at) {
        return chars ? chars->find(bytes.substr(at, c.size)) != chars->npos : is_space(c.value);
    };
    runtime.spend_bytes(bytes.size() * (1 + (chars ? chars->size() : 0) / 8));
    while (left && begin < end) {
        const CodePoint c = code_point_at(bytes, begin);
        if (!goes(c, begin)) break;
        begin += c.size;
    }
    while (right && end > begin) {
        const CodePoint c = last_code_point(bytes.substr(begin, end - begin));
        if (!goes(c, end - c.size)) break;
        end -= c.size;
    }
    return part(text, begin, end);
}

Text replace(Runtime& runtime, const Text& text, std::string_view old, const Text& with, int64_t count) {
    size_t left = count < 0 ? SIZE_MAX : static_cast<size_t>(count);
    runtime.spend_bytes(text.bytes.size());
    if (old.empty()) return interleave(runtime, text, with, left);
    TextBuilder out;
    size_t at = 0;
    for (; left > 0; --left) {
        const size_t found = find_bytes(text.bytes, old, at);
        if (found == std::string::npos) break;
        out.append(text, at, found);
        runtime.spend(1);
        runtime.spend_bytes(with.bytes.size());
        runtime.reserve(out.size() + with.bytes.size());
        out.append(with);
        at = found + old.size();
    }
    out.append(text, at, text.bytes.size());
    return out.take();
}

std::vector<Text> split_lines(const Text& text, bool keep_ends) {
    std::vector<Text> lines;
    size_t begin = 0;
    for (size_t at = 0; at < text.bytes.size();) {
        const CodePoint c = code_point_at(text.bytes, at);
        size_t next = at + c.size;
        if (is_line_end(c.value)) {
            if (c.value == '\r' && next < text.bytes.size() && text.bytes[next] == '\n') ++next;
            lines.push_back(part(text, begin, keep_ends ? next : at));
            begin = next;
        }
        at = next;
    }
    if (begin < text.bytes.size()) lines.push_back(part(text, begin, text.bytes.size()));
    return lines;
}

Text pad(Runtime& runtime, const Text& text, size_t before, size_t after, const Text& fill) {
    const size_t n = before + after;
    runtime.reserve(n > SIZE_MAX / 8 ? SIZE_MAX : n * fill.bytes.size());
    runtime.spend(n / 8);
    TextBuilder out;
    for (; before > 0; --before) out.append(fill);
    out.append(text);
    for (; after > 0; --after) out.append(fill);
    return out.take();
}

Text join(Runtime& runtime, const Text& separator, const std::vector<Value>& items) {
    TextBuilder out;
    for (size_t i = 0; i < items.size(); ++i) {
        require_defined(items[i]);
        if (!items[i].is_string()) refuse("sequence item {}: expected str instance, {} found", i, type_name(items[i]));
        const Text& text = items[i].text();
        runtime.spend(1);
        runtime.spend_bytes(text.bytes.size() + separator.bytes.size());
        runtime.reserve(out.size() + text.bytes.size() + separator.bytes.size());
        if (i > 0) out.append(separator);
        append_joined(out, text, separator.markup);
    }
    Text result = out.take();
    result.markup = separator.markup;
    return result;
}

Value like(Runtime& runtime, Text text, const Text& other) {
    text.markup = other.markup;
    return runtime.string(std::move(text));
}

Value texts_to_list(Runtime& runtime, std::vector<Text> texts, bool markup, bool as_tuple) {
    std::vector<Value> items;
    for (Text& text : texts) {
        runtime.spend(1);
        text.markup = markup;
        items.emplace_back(runtime.string(std::move(text)));
    }
    return runtime.list(std::move(items), as_tuple ? ListType::Tuple : ListType::List);
}

}  // namespace llm::jinja
