#pragma once
// UTF-8: reading and writing code points, and what to do with bytes that are not UTF-8. Ill-formed bytes become U+FFFD,
// one for each maximal subpart (Unicode 3.9, "substitution of maximal subparts"), as in Rust, Python and browsers.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace llm {

inline constexpr std::string_view kReplacementChar = "\xEF\xBF\xBD";

/// A code point and the bytes it takes.
struct CodePoint {
    char32_t value = 0;
    size_t size = 0;
};

/// The code point at text[at]; text must be valid UTF-8 and `at` the start of a character.
inline CodePoint code_point_at(std::string_view text, size_t at) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
    const unsigned lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    if (lead < 0xE0) return {((lead & 0x1Fu) << 6) | (byte(1) & 0x3Fu), 2};
    if (lead < 0xF0) return {((lead & 0x0Fu) << 12) | ((byte(1) & 0x3Fu) << 6) | (byte(2) & 0x3Fu), 3};
    return {((lead & 0x07u) << 18) | ((byte(1) & 0x3Fu) << 12) | ((byte(2) & 0x3Fu) << 6) | (byte(3) & 0x3Fu), 4};
}

/// The last code point of text, which must be valid UTF-8 and not empty.
CodePoint last_code_point(std::string_view text);

void append_utf8(std::string& out, char32_t code_point);

bool is_valid_utf8(std::string_view text);

/// The text with every ill-formed part replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

/// Puts characters together from bytes that arrive in any portions.
class Utf8Assembler {
  public:
    /// Adds bytes; returns the text that is certain now: complete characters, and U+FFFD for what can no longer become
    /// one.
    std::string push(std::string_view bytes);
    /// U+FFFD if a character was left incomplete. The assembler is empty afterwards.
    std::string finish();

  private:
    std::string held_;  // an incomplete character, at most 3 bytes
};

}  // namespace llm
