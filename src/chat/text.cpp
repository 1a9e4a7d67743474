#include "src/chat/text.h"

#include <algorithm>
#include <utility>

namespace llm {

std::string_view name(Origin origin) {
    switch (origin) {
        case Origin::Template:
            return "template";
        case Origin::Assistant:
            return "assistant";
        case Origin::Input:
            break;
    }
    return "input";
}

namespace jinja {
namespace {

bool continues_char(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The run that holds a byte.
std::vector<Run>::const_iterator run_of(const std::vector<Run>& runs, size_t byte) {
    return std::upper_bound(runs.begin(), runs.end(), byte, [](size_t at, const Run& run) { return at < run.end; });
}

}  // namespace

size_t count_chars(std::string_view utf8) {
    return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) { return !continues_char(c); }));
}

Text::Text(std::string utf8, Origin origin) : bytes(std::move(utf8)), n_chars(count_chars(bytes)) {
    if (origin != Origin::Template && !bytes.empty()) runs.push_back({bytes.size(), origin});
}

size_t Text::byte_of(size_t i) const {
    if (is_ascii()) return i;
    size_t at = 0;
    for (; i > 0; --i) {
        ++at;
        while (at < bytes.size() && continues_char(bytes[at])) ++at;
    }
    return at;
}

Origin Text::origin_at(size_t byte) const {
    const auto run = run_of(runs, byte);
    return run == runs.end() ? Origin::Template : run->origin;
}

void TextBuilder::append(std::string_view bytes, Origin origin) {
    if (bytes.empty()) return;
    if (runs_.empty() && origin != Origin::Template && !bytes_.empty())
        runs_.push_back({bytes_.size(), Origin::Template});
    bytes_ += bytes;
    if (!runs_.empty() && runs_.back().origin == origin)
        runs_.back().end = bytes_.size();
    else if (!runs_.empty() || origin != Origin::Template)
        runs_.push_back({bytes_.size(), origin});
}

void TextBuilder::append(const Text& text, size_t begin, size_t end) {
    const std::string_view bytes = text.bytes;
    auto run = run_of(text.runs, begin);
    while (begin < end) {
        const bool known = run != text.runs.end();
        const size_t stop = known ? std::min(end, run->end) : end;
        append(bytes.substr(begin, stop - begin), known ? run->origin : Origin::Template);
        begin = stop;
        if (known) ++run;
    }
}

Text TextBuilder::take() {
    Text text;
    text.bytes = std::exchange(bytes_, {});
    text.runs = std::exchange(runs_, {});
    text.n_chars = count_chars(text.bytes);
    return text;
}

}  // namespace jinja
}  // namespace llm
