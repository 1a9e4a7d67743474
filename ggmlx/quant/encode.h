#pragma once
// The quantizers: one function per block type that fits one row of one K block into its place in a tile.
// x: block_len finite float32 values, within largest_value(). Only row r of the tile is written.

#include "ggmlx/quant/blocks.h"

namespace ggmlx {

void encode_row(const float* x, TileQ8_0& tile, int r);
void encode_row(const float* x, TileQ4_0& tile, int r);
void encode_row(const float* x, TileQ4_1& tile, int r);
void encode_row(const float* x, TileQ4_K& tile, int r);
void encode_row(const float* x, TileQ6_K& tile, int r);
void encode_row(const float* x, TileMXFP4& tile, int r);
void encode_row(const float* x, TileMXFP8& tile, int r);

/// Puts 32 codes of 0..15 into row r of the nibbles of a block.
inline void store_nibbles(const int8_t* code, uint8_t (&q)[4][16][4], int r) {
    for (int k = 0; k < 16; ++k) q[k >> 2][r][k & 3] = static_cast<uint8_t>(code[k] | (code[k + 16] << 4));
}

}  // namespace ggmlx
