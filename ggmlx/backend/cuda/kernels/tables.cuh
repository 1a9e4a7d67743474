#pragma once
// Single values of a matrix of any weight type as float32, as quant/blocks.h gives them.

#include "ggmlx/backend/cuda/kernels/decode.cuh"

namespace ggmlx::cuda {

/// Value k (0..31) of sub-block `sub` of row r, as blocks.h value() gives it.
template <class Tile>
__device__ inline float tile_value(const Tile& t, int sub, int r, int k) {
    constexpr DType kType = Tile::kType;
    const int within = k & 15, half = k >> 4, j = within & 3;
    if constexpr (kType == DType::MXFP8) {
        return e8m0_to_float(t.e[r]) * e4m3_to_float(t.q[k >> 2][r][k & 3]);
    } else {
        const WordPair words = read_words(t, sub, within >> 2, r);
        const RowScale s = read_scale(t, sub, r);
        const bool from_high = kInterleaved<Tile> ? j >= 2 : half == 1;
        const int byte = kInterleaved<Tile> ? 2 * (j & 1) + half : j;
        const auto code = static_cast<int8_t>((from_high ? words.high : words.low) >> (8 * byte));
        int q = code;
        if constexpr (kType == DType::Q4_0) q -= 8;
        if constexpr (kType == DType::Q6_K)
            return s.scale * static_cast<float>(half ? s.high : s.low) * static_cast<float>(q - 32);
        const float v = s.scale * static_cast<float>(q);
        return kHasMinimum<Tile> ? v - s.minimum : v;
    }
}

/// Reads one value of a row.
template <class T>
struct PlainTable {
    const T* data;
    int64_t n_in;
    __device__ float value(int64_t row, int64_t k) const { return static_cast<float>(data[row * n_in + k]); }
};
template <class Tile>
struct TileTable {
    const Tile* tiles;
    int64_t n_tiles_in_row;
    __device__ float value(int64_t row, int64_t k) const {
        constexpr int kBlock = 32 * kSubBlocks<Tile>;
        const Tile& t = tiles[row / 16 * n_tiles_in_row + k / kBlock];
        return tile_value(t, static_cast<int>(k % kBlock / 32), static_cast<int>(row % 16), static_cast<int>(k % 32));
    }
};

/// Calls f with the table of a matrix of n_in columns.
template <class F>
void with_table(const std::byte* data, DType dtype, int64_t n_in, F f) {
    const auto tiles = [&]<class Tile>(const Tile* first) {
        f(TileTable<Tile>{first, ceil_div(n_in, 32 * kSubBlocks<Tile>)});
    };
    switch (dtype) {
        case DType::F32:
            return f(PlainTable<float>{reinterpret_cast<const float*>(data), n_in});
        case DType::F16:
            return f(PlainTable<__half>{reinterpret_cast<const __half*>(data), n_in});
        case DType::BF16:
            return f(PlainTable<__nv_bfloat16>{reinterpret_cast<const __nv_bfloat16*>(data), n_in});
        case DType::Q8_0:
            return tiles(reinterpret_cast<const TileQ8_0*>(data));
        case DType::Q4_0:
            return tiles(reinterpret_cast<const TileQ4_0*>(data));
        case DType::Q4_1:
            return tiles(reinterpret_cast<const TileQ4_1*>(data));
        case DType::Q4_K:
            return tiles(reinterpret_cast<const TileQ4_K*>(data));
        case DType::Q6_K:
            return tiles(reinterpret_cast<const TileQ6_K*>(data));
        case DType::MXFP4:
            return tiles(reinterpret_cast<const TileMXFP4*>(data));
        case DType::MXFP8:
            return tiles(reinterpret_cast<const TileMXFP8*>(data));
        default:
            return;  // supports() lets nothing else through
    }
}

}  // namespace ggmlx::cuda
