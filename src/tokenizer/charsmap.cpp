#include "src/tokenizer/charsmap.h"

#include <algorithm>

#include "ggmlx/core/error.h"
#include "src/tokenizer/pattern.h"
#include "src/tokenizer/unicode.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;

constexpr size_t kMaxGrapheme = 5;  // bytes up to which a grapheme is looked up whole

uint32_t little_endian_32(std::string_view bytes) {
    uint32_t value = 0;
    for (size_t i = 4; i > 0; --i) value = (value << 8) | static_cast<unsigned char>(bytes[i - 1]);
    return value;
}

// A unit of the trie. Source: Yata et al. 2007, "A compact static double-array keeping character codes", and the layout
// that SentencePiece's files have.
bool unit_has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t unit_value(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t unit_label(uint32_t unit) { return unit & 0x800000FF; }
size_t unit_offset(uint32_t unit) { return size_t{unit >> 10} << ((unit & 0x200) >> 6); }

}  // namespace

Charsmap::Charsmap(std::string_view bytes) {
    const size_t trie_bytes = bytes.size() >= 4 ? little_endian_32(bytes) : 0;
    require(bytes.size() >= 4 && trie_bytes % 4 == 0 && trie_bytes >= 4 && trie_bytes <= bytes.size() - 4,
            ErrorKind::CorruptFile, "tokenizer.json: the table of normalizer Precompiled is cut short");
    for (size_t i = 4; i < 4 + trie_bytes; i += 4) trie_.push_back(little_endian_32(bytes.substr(i)));
    texts_ = bytes.substr(4 + trie_bytes);
    require(is_valid_utf8(texts_), ErrorKind::CorruptFile,
            "tokenizer.json: the table of normalizer Precompiled has texts that are not UTF-8");
    for (size_t c = 0; c < plain_.size(); ++c) {
        const char byte = static_cast<char>(c);
        plain_[c] = byte != '\r' && !rule({&byte, 1});
    }
}

std::optional<std::string_view> Charsmap::rule(std::string_view text) const {
    size_t at = unit_offset(trie_[0]);
    for (const char c : text) {
        const auto label = static_cast<unsigned char>(c);
        at ^= label;
        if (label == 0 || at >= trie_.size() || unit_label(trie_[at]) != label) return std::nullopt;
        const bool has_leaf = unit_has_leaf(trie_[at]);
        at ^= unit_offset(trie_[at]);
        if (!has_leaf) continue;
        const size_t begin = at < trie_.size() ? unit_value(trie_[at]) : texts_.size();
        const bool starts = begin < texts_.size() && (static_cast<unsigned char>(texts_[begin]) & 0xC0) != 0x80;
        if (!starts) return std::nullopt;
        return std::string_view(texts_).substr(begin, std::min(texts_.find('\0', begin), texts_.size()) - begin);
    }
    return std::nullopt;
}

void Charsmap::append(std::string& out, std::string_view grapheme) const {
    if (grapheme.size() <= kMaxGrapheme) {
        if (const auto text = rule(grapheme)) {
            out += *text;
            return;
        }
    }
    for (size_t at = 0; at < grapheme.size();) {
        const std::string_view character = grapheme.substr(at, code_point_at(grapheme, at).size);
        out += rule(character).value_or(character);
        at += character.size();
    }
}

size_t Charsmap::plain_run(std::string_view text, size_t at) const {
    const auto is_ascii = [&](size_t i) { return static_cast<unsigned char>(text[i]) < plain_.size(); };
    size_t end = at;
    while (end < text.size() && is_ascii(end) && plain_[static_cast<unsigned char>(text[end])]) ++end;
    // A mark may follow the last one and make a grapheme with it.
    const bool alone = end == text.size() || is_ascii(end);
    return end - at - (end > at && !alone ? 1 : 0);
}

std::string Charsmap::apply(std::string_view text) const {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const size_t n_plain = plain_run(text, at);
        out.append(text, at, n_plain);
        at += n_plain;
        if (at == text.size()) break;
        const size_t size = grapheme_size(text.substr(at));
        append(out, text.substr(at, size));
        require(out.size() < kMaxTextBytes, ErrorKind::InvalidArgument, "a text is too long to tokenize (2 GiB)");
        at += size;
    }
    return out;
}

}  // namespace llm
