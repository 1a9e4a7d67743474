#pragma once
// Bit layout of every block type, mirrored by gguf-like-spec/, and the decode of single values: the one place that
// knows it.
//
// A tile holds 16 rows ("output rows", index r) of one K block. Values lie in groups of four consecutive k, the groups
// of the 16 rows side by side (64 bytes), so that four activation bytes serve 16 rows at once; the rows' scales lie
// together at the end. In 4-bit types the low nibbles of a 32-value block are k = 0..15 and the high nibbles k
// = 16..31: byte [g][r][j] has k = 4g+j in its low nibble and k = 16+4g+j in its high one (g = 0..3, j = 0..3). In
// 8-bit types byte [g][r][j] is k = 4g+j (g = 0..7). The values are those of the well-known GGUF blocks, or of the OCP
// microscaling types (MXFP4: E2M1, MXFP8: E4M3, each with an E8M0 scale per 32).

#include <cstdint>

#include "ggmlx/core/dtype.h"
#include "ggmlx/core/float_types.h"

namespace ggmlx {

struct TileQ8_0 {
    static constexpr DType kType = DType::Q8_0;
    int8_t q[8][16][4];
    uint16_t d[16];  ///< f16; value = d * q
};
struct TileQ4_0 {
    static constexpr DType kType = DType::Q4_0;
    uint8_t q[4][16][4];
    uint16_t d[16];  ///< f16; value = d * (q - 8)
};
struct TileQ4_1 {
    static constexpr DType kType = DType::Q4_1;
    uint8_t q[4][16][4];
    uint16_t d[16];  ///< f16; value = d * q + m
    uint16_t m[16];  ///< f16
};
/// Eight sub-blocks of 32 values with 6-bit scales sc and minima mn: value = (d * sc) * q - (dmin * mn).
struct TileQ4_K {
    static constexpr DType kType = DType::Q4_K;
    uint8_t q[8][4][16][4];  ///< [sub-block], then as TileQ4_0
    uint8_t lo[8][16];       ///< [sub-block][r]: low nibble sc & 15, high nibble mn & 15
    uint8_t hi[4][16];  ///< [sub-block / 2][r]: bits 0-1 sc >> 4, bits 2-3 mn >> 4 of the even sub-block; 4-5, 6-7 of
                        ///< the odd
    uint16_t d[16];     ///< f16
    uint16_t dmin[16];  ///< f16
};
/// Eight sub-blocks of 32 values, each with two int8 scales (k = 0..15 and 16..31): value = (d * sc) * (q - 32).
struct TileQ6_K {
    static constexpr DType kType = DType::Q6_K;
    uint8_t lo[8][4][16][4];  ///< [sub-block], low four bits of q, as TileQ4_0
    uint8_t hi[8][2][16][4];  ///< [sub-block][h][r][j], high two bits of q: bits 0-1 k = 8h+j, 2-3 k = 8h+4+j, 4-5 k =
                              ///< 16+8h+j, 6-7 k = 20+8h+j
    int8_t sc[16][16];        ///< [2 * sub-block + half][r]
    uint16_t d[16];           ///< f16
};
struct TileMXFP4 {
    static constexpr DType kType = DType::MXFP4;
    uint8_t q[4][16][4];  ///< E2M1 codes
    uint8_t e[16];        ///< E8M0; value = 2^(e-127) * e2m1(code)
};
struct TileMXFP8 {
    static constexpr DType kType = DType::MXFP8;
    uint8_t q[8][16][4];  ///< E4M3 codes
    uint8_t e[16];        ///< E8M0; value = 2^(e-127) * e4m3(code)
};

static_assert(sizeof(TileQ8_0) == 544 && sizeof(TileQ4_0) == 288 && sizeof(TileQ4_1) == 320);
static_assert(sizeof(TileQ4_K) == 2304 && sizeof(TileQ6_K) == 3360);
static_assert(sizeof(TileMXFP4) == 272 && sizeof(TileMXFP8) == 528);

/// Twice the E2M1 value of a 4-bit code: integers, so dot products with int8 are exact; the half goes into the scale.
inline constexpr int8_t kE2M1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// The nibble of value k (0..31) of row r in q[4][16][4].
inline int nibble(const uint8_t (&q)[4][16][4], int r, int k) {
    const uint8_t byte = q[(k & 15) >> 2][r][k & 3];
    return k < 16 ? byte & 15 : byte >> 4;
}

// The integer of value k of row r. An integer type's value is scale * quant (- minimum), see sub_scale and sub_min.
inline int quant(const TileQ8_0& t, int r, int k) { return t.q[k >> 2][r][k & 3]; }
inline int quant(const TileQ4_0& t, int r, int k) { return nibble(t.q, r, k) - 8; }
inline int quant(const TileQ4_1& t, int r, int k) { return nibble(t.q, r, k); }
inline int quant(const TileQ4_K& t, int r, int k) { return nibble(t.q[k >> 5], r, k & 31); }
inline int quant(const TileQ6_K& t, int r, int k) {
    const int in_half = k & 15, high_half = (k >> 4) & 1;
    const uint8_t byte = t.hi[k >> 5][in_half >> 3][r][k & 3];
    const int shift = 4 * high_half + 2 * ((in_half >> 2) & 1);
    return (nibble(t.lo[k >> 5], r, k & 31) | (((byte >> shift) & 3) << 4)) - 32;
}
inline int quant(const TileMXFP4& t, int r, int k) { return kE2M1Doubled[nibble(t.q, r, k)]; }

/// 6-bit scale and minimum of sub-block b of row r.
inline int scale_6bit(const TileQ4_K& t, int b, int r) {
    return (t.lo[b][r] & 15) | (((t.hi[b >> 1][r] >> (4 * (b & 1))) & 3) << 4);
}
inline int min_6bit(const TileQ4_K& t, int b, int r) {
    return (t.lo[b][r] >> 4) | (((t.hi[b >> 1][r] >> (4 * (b & 1) + 2)) & 3) << 4);
}

// The float scale s_w of sub-block b (32 values) of row r; b is 0 for 32-value types. For Q6_K it is d alone: its int8
// scales go into the integer dot product.
inline float sub_scale(const TileQ8_0& t, int, int r) { return f16_to_f32(t.d[r]); }
inline float sub_scale(const TileQ4_0& t, int, int r) { return f16_to_f32(t.d[r]); }
inline float sub_scale(const TileQ4_1& t, int, int r) { return f16_to_f32(t.d[r]); }
inline float sub_scale(const TileQ4_K& t, int b, int r) {
    return f16_to_f32(t.d[r]) * static_cast<float>(scale_6bit(t, b, r));
}
inline float sub_scale(const TileQ6_K& t, int, int r) { return f16_to_f32(t.d[r]); }
inline float sub_scale(const TileMXFP4& t, int, int r) { return e8m0_to_f32(t.e[r]) * 0.5f; }
inline float sub_scale(const TileMXFP8& t, int, int r) { return e8m0_to_f32(t.e[r]); }

/// What is subtracted from every value of sub-block b of row r (types with a minimum; 0 elsewhere).
inline float sub_min(const TileQ4_1& t, int, int r) { return -f16_to_f32(t.m[r]); }
inline float sub_min(const TileQ4_K& t, int b, int r) {
    return f16_to_f32(t.dmin[r]) * static_cast<float>(min_6bit(t, b, r));
}
template <class Tile>
float sub_min(const Tile&, int, int) {
    return 0.0f;
}

/// Value k of row r as float32: what a dequantizer gives.
inline float value(const TileQ8_0& t, int r, int k) { return sub_scale(t, 0, r) * static_cast<float>(quant(t, r, k)); }
inline float value(const TileQ4_0& t, int r, int k) { return sub_scale(t, 0, r) * static_cast<float>(quant(t, r, k)); }
inline float value(const TileQ4_1& t, int r, int k) {
    return sub_scale(t, 0, r) * static_cast<float>(quant(t, r, k)) - sub_min(t, 0, r);
}
inline float value(const TileQ4_K& t, int r, int k) {
    return sub_scale(t, k >> 5, r) * static_cast<float>(quant(t, r, k)) - sub_min(t, k >> 5, r);
}
inline float value(const TileQ6_K& t, int r, int k) {
    return sub_scale(t, 0, r) * static_cast<float>(t.sc[k >> 4][r]) * static_cast<float>(quant(t, r, k));
}
inline float value(const TileMXFP4& t, int r, int k) { return sub_scale(t, 0, r) * static_cast<float>(quant(t, r, k)); }
inline float value(const TileMXFP8& t, int r, int k) {
    return sub_scale(t, 0, r) * f8_e4m3_to_f32(t.q[k >> 2][r][k & 3]);
}

/// Calls f with a null pointer of the tile type of a block dtype: with_tile(t, [&]<class Tile>(const Tile*) { … }).
/// Throws invalid_argument for a plain dtype.
template <class F>
decltype(auto) with_tile(DType dtype, F&& f) {
    switch (dtype) {
        case DType::Q8_0:
            return f(static_cast<const TileQ8_0*>(nullptr));
        case DType::Q4_0:
            return f(static_cast<const TileQ4_0*>(nullptr));
        case DType::Q4_1:
            return f(static_cast<const TileQ4_1*>(nullptr));
        case DType::Q4_K:
            return f(static_cast<const TileQ4_K*>(nullptr));
        case DType::Q6_K:
            return f(static_cast<const TileQ6_K*>(nullptr));
        case DType::MXFP4:
            return f(static_cast<const TileMXFP4*>(nullptr));
        case DType::MXFP8:
            return f(static_cast<const TileMXFP8*>(nullptr));
        default:
            fail(ErrorKind::InvalidArgument, "{} is no block type", name(dtype));
    }
}

}  // namespace ggmlx
