// Methods of strings that cut them into pieces.

#include <algorithm>

#include "src/chat/arguments.h"
#include "src/chat/characters.h"
#include "src/chat/method_table.h"
#include "src/chat/methods.h"
#include "src/chat/strings.h"

namespace llm::jinja {
namespace {

Text piece(const Text& text, size_t begin, size_t end) {
    TextBuilder out;
    out.append(text, begin, end);
    return out.take();
}

/// Adds a piece; what pieces take is not counted before they are values.
void push(Runtime& runtime, std::vector<Text>& pieces, Text text) {
    runtime.spend(1);
    runtime.reserve((pieces.size() + 1) * sizeof(Text) + text.bytes.size());
    pieces.push_back(std::move(text));
}

/// Where the word that ends at `end` begins.
size_t word_begin(std::string_view text, size_t end) {
    size_t begin = end;
    while (begin > 0) {
        size_t previous = begin - 1;
        while (previous > 0 && (static_cast<unsigned char>(text[previous]) & 0xC0) == 0x80) --previous;
        if (skip_space(text, previous, begin) == begin) break;
        begin = previous;
    }
    return begin;
}

size_t word_end(std::string_view text, size_t begin) {
    while (begin < text.size() && skip_space(text, begin, text.size()) == begin) {
        ++begin;
        while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
    }
    return begin;
}

std::vector<Text> split_words(Runtime& runtime, const Text& text, size_t limit) {
    std::vector<Text> words;
    const size_t n = text.bytes.size();
    for (size_t at = skip_space(text.bytes, 0, n); at < n; at = skip_space(text.bytes, at, n)) {
        const size_t end = words.size() == limit ? n : word_end(text.bytes, at);
        push(runtime, words, piece(text, at, end));
        at = end;
    }
    return words;
}

std::vector<Text> split_words_from_right(Runtime& runtime, const Text& text, size_t limit) {
    std::vector<Text> words;
    size_t end = skip_space_back(text.bytes, 0, text.bytes.size());
    while (end > 0) {
        const size_t begin = words.size() == limit ? 0 : word_begin(text.bytes, end);
        push(runtime, words, piece(text, begin, end));
        end = skip_space_back(text.bytes, 0, begin);
    }
    std::reverse(words.begin(), words.end());
    return words;
}

std::vector<Text> split_at(Runtime& runtime, const Text& text, std::string_view separator, size_t limit) {
    std::vector<Text> pieces;
    size_t begin = 0;
    while (pieces.size() < limit) {
        const size_t at = find_bytes(text.bytes, separator, begin);
        if (at == std::string::npos) break;
        push(runtime, pieces, piece(text, begin, at));
        begin = at + separator.size();
    }
    push(runtime, pieces, piece(text, begin, text.bytes.size()));
    return pieces;
}

std::vector<Text> split_at_from_right(Runtime& runtime, const Text& text, std::string_view separator, size_t limit) {
    std::vector<Text> pieces;
    size_t end = text.bytes.size();
    while (pieces.size() < limit && end >= separator.size()) {
        const size_t at = text.bytes.rfind(separator, end - separator.size());
        if (at == std::string::npos) break;
        push(runtime, pieces, piece(text, at + separator.size(), end));
        end = at;
    }
    push(runtime, pieces, piece(text, 0, end));
    std::reverse(pieces.begin(), pieces.end());
    return pieces;
}

template <bool from_right>
Value split(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("split", arguments, {"sep", "maxsplit"});
    const Text& text = self.text();
    const int64_t given = bound.integer_or(1, -1);
    const size_t limit = given < 0 ? SIZE_MAX : static_cast<size_t>(given);
    runtime.spend_bytes(8 * text.bytes.size());
    std::vector<Text> pieces;
    if (!bound.is_set(0)) {
        pieces = from_right ? split_words_from_right(runtime, text, limit) : split_words(runtime, text, limit);
    } else {
        const std::string& separator = bound.text(0).bytes;
        if (separator.empty()) refuse("empty separator");
        if (from_right) runtime.spend_bytes(separator.size() * text.bytes.size() / 64);
        pieces = from_right ? split_at_from_right(runtime, text, separator, limit)
                            : split_at(runtime, text, separator, limit);
    }
    return texts_to_list(runtime, std::move(pieces), text.markup);
}

Value lines(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("splitlines", arguments, {"keepends"});
    runtime.spend_bytes(8 * self.str().size());
    return texts_to_list(runtime, split_lines(self.text(), bound.truth_or(0, false)), self.text().markup);
}

template <bool from_right>
Value partition(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("partition", arguments, {"sep"}, 1);
    const Text& text = self.text();
    const std::string& separator = bound.text(0).bytes;
    if (separator.empty()) refuse("empty separator");
    runtime.spend_bytes(text.bytes.size());
    if (from_right) runtime.spend_bytes(separator.size() * text.bytes.size() / 64);
    const size_t at = from_right ? text.bytes.rfind(separator) : find_bytes(text.bytes, separator, 0);
    std::vector<Text> parts;
    if (at == std::string::npos)
        parts = from_right ? std::vector<Text>{Text(), Text(), text} : std::vector<Text>{text, Text(), Text()};
    else
        parts = {piece(text, 0, at), piece(text, at, at + separator.size()),
                 piece(text, at + separator.size(), text.bytes.size())};
    return texts_to_list(runtime, std::move(parts), text.markup, true);
}

}  // namespace

Method find_string_split_method(std::string_view name) {
    static constexpr std::pair<std::string_view, Method> kMethods[] = {
        {"split", split<false>},         {"rsplit", split<true>},         {"splitlines", lines},
        {"partition", partition<false>}, {"rpartition", partition<true>},
    };
    return find_in(kMethods, name);
}

}  // namespace llm::jinja
