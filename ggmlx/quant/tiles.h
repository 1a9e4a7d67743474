#pragma once
// Bit layout of every block type, mirrored by gguf-like-spec/. Plain data: no inline function is reachable from here,
// so code compiled for one instruction set or device may include it.
//
// A tile holds 16 rows ("output rows", index r) of one K block. Values lie in groups of four consecutive k, the groups
// of the 16 rows side by side (64 bytes), so that four activation bytes serve 16 rows at once; the rows' scales lie
// together at the end. In 4-bit types the low nibbles of a 32-value block are k = 0..15 and the high nibbles k
// = 16..31: byte [g][r][j] has k = 4g+j in its low nibble and k = 16+4g+j in its high one (g = 0..3, j = 0..3). In
// 8-bit types byte [g][r][j] is k = 4g+j (g = 0..7). The values are those of the well-known GGUF blocks, or of the OCP
// microscaling types (MXFP4: E2M1, MXFP8: E4M3, each with an E8M0 scale per 32).

#include <cstdint>

#include "ggmlx/core/dtype_id.h"

namespace ggmlx {

struct TileQ8_0 {
    static constexpr DType kType = DType::Q8_0;
    int8_t q[8][16][4];
    uint16_t d[16];  ///< f16; value = d * q
};
/// The same 32 values of one row alone: rows of a cache are written one at a time, so they lie one after the other.
struct RowQ8_0 {
    uint16_t d;  ///< f16; value = d * q
    int8_t q[32];
};
static_assert(sizeof(RowQ8_0) == 34);
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

}  // namespace ggmlx
