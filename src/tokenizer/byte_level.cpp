#include "src/tokenizer/byte_level.h"

#include <array>

#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

constexpr bool stands_for_itself(int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr char32_t kFirstStandIn = 0x100;
constexpr size_t kAlphabetEnd = kFirstStandIn + 68;

constexpr std::array<char32_t, 256> make_characters() {
    std::array<char32_t, 256> table{};
    char32_t stand_in = kFirstStandIn;
    for (int byte = 0; byte < 256; ++byte)
        table[static_cast<size_t>(byte)] = stands_for_itself(byte) ? static_cast<char32_t>(byte) : stand_in++;
    return table;
}
constexpr std::array<char32_t, 256> kCharacters = make_characters();

/// By character: its byte, or -1.
constexpr std::array<int16_t, kAlphabetEnd> make_bytes() {
    std::array<int16_t, kAlphabetEnd> table{};
    for (int16_t& byte : table) byte = -1;
    for (int16_t byte = 0; byte < 256; ++byte) table[kCharacters[static_cast<size_t>(byte)]] = byte;
    return table;
}
constexpr std::array<int16_t, kAlphabetEnd> kBytes = make_bytes();

}  // namespace

void append_byte_level(std::string& out, std::string_view bytes) {
    for (const char c : bytes) append_utf8(out, kCharacters[static_cast<unsigned char>(c)]);
}

std::optional<std::string> from_byte_level(std::string_view spelling) {
    std::string bytes;
    for (size_t at = 0; at < spelling.size();) {
        const CodePoint c = code_point_at(spelling, at);
        if (c.value >= kAlphabetEnd || kBytes[c.value] < 0) return std::nullopt;
        bytes += static_cast<char>(kBytes[c.value]);
        at += c.size;
    }
    return bytes;
}

}  // namespace llm
