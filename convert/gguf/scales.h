#pragma once
// Details of GGUF blocks that packing and decoding share.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace convert {

/// The 16 bits at any address.
inline uint16_t load_u16(const std::byte* p) {
    uint16_t value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

inline bool is_finite_f16(uint16_t h) { return (h & 0x7c00u) != 0x7c00u; }

/// 6-bit scale and minimum of sub-block b (0 to 7) from the 12 bytes that Q4_K and Q5_K have for them: the first four
/// of each lie in the low six bits of bytes 0-3 and 4-7; of the last four, bytes 8-11 hold the low four bits and the
/// upper two bits of bytes 0-3 and 4-7 the rest.
struct ScaleAndMin {
    int scale = 0, min = 0;
};
inline ScaleAndMin scale_and_min(const std::byte* packed, int b) {
    auto byte = [packed](int i) { return std::to_integer<int>(packed[i]); };
    if (b < 4) return {byte(b) & 63, byte(b + 4) & 63};
    return {(byte(b + 4) & 15) | (byte(b - 4) >> 6 << 4), (byte(b + 4) >> 4) | (byte(b) >> 6 << 4)};
}

}  // namespace convert
