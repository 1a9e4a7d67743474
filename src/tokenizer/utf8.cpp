#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

enum class Sequence { Valid, Invalid, Incomplete };

struct Scanned {
    Sequence kind;
    size_t size;  // bytes of the character, or of the ill-formed part
};

/// The sequence that begins at text[at] (Unicode table 3-7). Incomplete: the text ends before the character does.
Scanned scan(std::string_view text, size_t at) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(at);
    if (lead < 0x80) return {Sequence::Valid, 1};
    if (lead < 0xC2 || lead > 0xF4) return {Sequence::Invalid, 1};
    const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    unsigned low = 0x80, high = 0xBF;  // of the second byte: no overlong forms, surrogates or values past U+10FFFF
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    for (size_t i = 1; i < length; ++i, low = 0x80, high = 0xBF) {
        if (at + i >= text.size()) return {Sequence::Incomplete, i};
        if (byte(at + i) < low || byte(at + i) > high) return {Sequence::Invalid, i};
    }
    return {Sequence::Valid, length};
}

/// Appends text from `at` on, repaired; stops before an incomplete character at the end and returns its position.
size_t append_repaired(std::string& out, std::string_view text) {
    size_t done = 0, at = 0;  // [done, at) is valid and not yet copied
    while (at < text.size()) {
        const Scanned s = scan(text, at);
        if (s.kind != Sequence::Valid) {
            out.append(text, done, at - done);
            if (s.kind == Sequence::Incomplete) return at;
            out += kReplacementChar;
            done = at + s.size;
        }
        at += s.size;
    }
    out.append(text, done, at - done);
    return at;
}

}  // namespace

CodePoint last_code_point(std::string_view text) {
    size_t at = text.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    return code_point_at(text, at);
}

void append_utf8(std::string& out, char32_t c) {
    const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xC0 | (c >> 6));
        put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        put(0xE0 | (c >> 12));
        put(0x80 | ((c >> 6) & 0x3F));
        put(0x80 | (c & 0x3F));
    } else {
        put(0xF0 | (c >> 18));
        put(0x80 | ((c >> 12) & 0x3F));
        put(0x80 | ((c >> 6) & 0x3F));
        put(0x80 | (c & 0x3F));
    }
}

bool is_valid_utf8(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const Scanned s = scan(text, at);
        if (s.kind != Sequence::Valid) return false;
        at += s.size;
    }
    return true;
}

std::string replace_invalid_utf8(std::string_view text) {
    Utf8Assembler assembler;
    std::string out = assembler.push(text);
    return out += assembler.finish();
}

std::string Utf8Assembler::push(std::string_view bytes) {
    held_ += bytes;
    std::string out;
    held_.erase(0, append_repaired(out, held_));
    return out;
}

std::string Utf8Assembler::finish() {
    if (held_.empty()) return {};
    held_.clear();
    return std::string(kReplacementChar);
}

}  // namespace llm
