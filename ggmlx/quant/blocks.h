#pragma once
// The decode of single values of every block type (layouts: tiles.h): the one place that knows it.

#include "ggmlx/core/dtype.h"
#include "ggmlx/core/float_types.h"
#include "ggmlx/quant/tiles.h"

namespace ggmlx {

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
