#include "ggmlx/core/base64.h"

#include <array>
#include <cstdint>

namespace ggmlx {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// By character: its value, or -1.
constexpr std::array<int8_t, 256> make_values() {
    std::array<int8_t, 256> table{};
    for (int8_t& value : table) value = -1;
    for (size_t i = 0; i < kDigits.size(); ++i) table[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
    return table;
}
constexpr std::array<int8_t, 256> kValues = make_values();

}  // namespace

std::string to_base64(std::string_view bytes) {
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    uint32_t bits = 0;
    int n_bits = 0;
    for (const char byte : bytes) {
        bits = (bits << 8) | static_cast<unsigned char>(byte);
        for (n_bits += 8; n_bits >= 6; n_bits -= 6) out += kDigits[(bits >> (n_bits - 6)) & 0x3F];
    }
    if (n_bits > 0) out += kDigits[(bits << (6 - n_bits)) & 0x3F];
    out.append((4 - out.size() % 4) % 4, '=');
    return out;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 == 0 && text.ends_with('=')) text.remove_suffix(text.ends_with("==") ? 2 : 1);
    if (text.size() % 4 == 1) return std::nullopt;
    std::string out;
    out.reserve(text.size() / 4 * 3 + 2);
    uint32_t bits = 0;
    int n_bits = 0;
    for (const char digit : text) {
        const int8_t value = kValues[static_cast<unsigned char>(digit)];
        if (value < 0) return std::nullopt;
        bits = (bits << 6) | static_cast<uint32_t>(value);
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        out += static_cast<char>(bits >> n_bits);
    }
    const bool clean = (bits & ((1u << n_bits) - 1)) == 0;  // what is left over of the last digit
    return clean ? std::optional(out) : std::nullopt;
}

}  // namespace ggmlx
