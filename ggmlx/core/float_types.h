#pragma once
// Small float formats to and from float32, in plain integer arithmetic: the definition every vector version must equal
// bit for bit. All conversions from float32 round to nearest, ties to even, and keep NaN a NaN.

#include <bit>
#include <cmath>
#include <cstdint>

namespace ggmlx {

inline float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

inline uint16_t f32_to_bf16(float f) {
    auto u = std::bit_cast<uint32_t>(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x0040u);  // quiet NaN, sign kept
    return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

inline float f16_to_f32(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
    const uint32_t exponent = (h >> 10) & 0x1fu;
    const uint32_t mantissa = h & 0x3ffu;
    if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in float32
        float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
        return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
    }
    if (exponent == 31)
        return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) | (mantissa ? 0x400000u : 0u));
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

inline uint16_t f32_to_f16(float f) {
    const auto u = std::bit_cast<uint32_t>(f);
    const auto sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
    const uint32_t a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((a >> 13) & 0x1ffu));
    if (a >= 0x47800000u) return sign | 0x7c00u;  // 65536 and more, infinity
    if (a < 0x38800000u) {                        // below 2^-14: a multiple of 2^-24
        float scaled = std::bit_cast<float>(a) * 0x1p24f;
        return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
    }
    const uint32_t rounded = a + 0xfffu + ((a >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13));  // 65520 and more carry into infinity
}

/// OCP E4M3 (the "FN" form): bias 7, no infinities, 0x7f and 0xff are NaN.
inline float f8_e4m3_to_f32(uint8_t b) {
    const uint32_t sign = static_cast<uint32_t>(b & 0x80u) << 24;
    const uint32_t exponent = (b >> 3) & 0xfu;
    const uint32_t mantissa = b & 7u;
    if ((b & 0x7fu) == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
    if (exponent == 0) {
        float magnitude = static_cast<float>(mantissa) * 0x1p-9f;
        return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
    }
    return std::bit_cast<float>(sign | ((exponent + 120) << 23) | (mantissa << 20));
}

/// Values beyond ±448, infinities included, become ±448.
inline uint8_t f32_to_f8_e4m3(float f) {
    const auto u = std::bit_cast<uint32_t>(f);
    const auto sign = static_cast<uint8_t>((u >> 24) & 0x80u);
    const uint32_t a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return sign | 0x7fu;
    if (a >= 0x43e00000u) return sign | 0x7eu;  // 448 and more
    if (a < 0x3c800000u) {                      // below 2^-6: a multiple of 2^-9
        float scaled = std::bit_cast<float>(a) * 0x1p9f;
        return static_cast<uint8_t>(sign | static_cast<uint8_t>(std::nearbyint(scaled)));
    }
    const uint32_t rounded = a + 0x7ffffu + ((a >> 20) & 1u);
    return static_cast<uint8_t>(sign | ((rounded - (120u << 23)) >> 20));
}

/// E8M0 scale byte: 2^(e-127); 0 is the subnormal 2^-127, 255 is NaN.
inline float e8m0_to_f32(uint8_t e) {
    if (e == 255) return std::bit_cast<float>(0x7fc00000u);
    return std::bit_cast<float>(e == 0 ? 0x00400000u : static_cast<uint32_t>(e) << 23);
}

}  // namespace ggmlx
