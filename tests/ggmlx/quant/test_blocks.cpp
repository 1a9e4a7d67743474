// Tiles made by hand, bit by bit, against values computed from the type's definition.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "ggmlx/quant/blocks.h"
#include "ggmlx/quant/quantize.h"

namespace ggmlx {
namespace {

template <class Tile>
std::vector<float> decode(const Tile& tile, int64_t n_rows, int64_t n_in) {
    std::vector<float> values(static_cast<size_t>(n_rows * n_in));
    dequantize_rows(Tile::kType, std::as_bytes(std::span(&tile, 1)), n_rows, n_in, 0, n_rows, values.data());
    return values;
}

// Bytes 00 11 .. FF of row 3 in order of position, in group order. Files of Hugging Face pack neighbours into a byte,
// which would give pairs of equal values here; ours splits low and high halves of the block.
TEST(TileMXFP4, LowNibblesComeBeforeHighNibbles) {
    constexpr float kCodes[16] = {0, .5f, 1, 1.5f, 2, 3, 4, 6, 0, -.5f, -1, -1.5f, -2, -3, -4, -6};
    TileMXFP4 tile{};
    for (int k = 0; k < 16; ++k) tile.q[k / 4][3][k % 4] = static_cast<uint8_t>(k);  // 00 01 .. 0F
    tile.e[3] = 127;
    const std::vector<float> values = decode(tile, 16, 32);
    for (size_t k = 0; k < 16; ++k) {
        EXPECT_EQ(values[3 * 32 + k], kCodes[k]) << k;
        EXPECT_EQ(values[3 * 32 + 16 + k], 0.0f) << k;
    }
}

TEST(TileMXFP4, ScalesAreExponents) {
    TileMXFP4 tile{};
    const uint8_t exponents[] = {120, 127, 128, 0, 1, 254};
    for (int r = 0; r < 6; ++r) {
        tile.e[r] = exponents[r];
        tile.q[0][r][0] = 2 | (3 << 4);  // 1 at k = 0, 1.5 at k = 16
    }
    const std::vector<float> values = decode(tile, 16, 32);
    for (size_t r = 0; r < 6; ++r) {
        EXPECT_EQ(values[r * 32], std::ldexp(1.0f, exponents[r] - 127)) << r;
        EXPECT_EQ(values[r * 32 + 16], std::ldexp(1.5f, exponents[r] - 127)) << r;
    }
}

TEST(TileMXFP8, HoldsE4M3BytesInGroupsOfFour) {
    TileMXFP8 tile{};
    for (int k = 0; k < 32; ++k) tile.q[k / 4][5][k % 4] = static_cast<uint8_t>(0x30 + k);
    tile.e[5] = 130;
    const std::vector<float> values = decode(tile, 16, 32);
    for (size_t k = 0; k < 32; ++k)
        EXPECT_EQ(values[5 * 32 + k], 8.0f * f8_e4m3_to_f32(static_cast<uint8_t>(0x30 + k))) << k;
}

TEST(TileQ8_0, IsScaleTimesSignedByte) {
    TileQ8_0 tile{};
    for (int k = 0; k < 32; ++k) tile.q[k / 4][15][k % 4] = static_cast<int8_t>(k * 8 - 128);
    tile.d[15] = f32_to_f16(0.25f);
    const std::vector<float> values = decode(tile, 16, 32);
    for (size_t k = 0; k < 32; ++k) EXPECT_EQ(values[15 * 32 + k], 0.25f * (static_cast<float>(k) * 8 - 128)) << k;
}

TEST(TileQ4, OffsetEightAndMinimum) {
    TileQ4_0 signed_tile{};
    TileQ4_1 affine_tile{};
    for (int k = 0; k < 16; ++k)
        signed_tile.q[k / 4][0][k % 4] = affine_tile.q[k / 4][0][k % 4] = static_cast<uint8_t>(k | ((15 - k) << 4));
    signed_tile.d[0] = affine_tile.d[0] = f32_to_f16(0.5f);
    affine_tile.m[0] = f32_to_f16(-3.0f);
    const std::vector<float> a = decode(signed_tile, 1, 32), b = decode(affine_tile, 1, 32);
    for (int k = 0; k < 32; ++k) {
        const auto code = static_cast<float>(k < 16 ? k : 31 - k);
        EXPECT_EQ(a[static_cast<size_t>(k)], 0.5f * (code - 8)) << k;
        EXPECT_EQ(b[static_cast<size_t>(k)], 0.5f * code - 3.0f) << k;
    }
}

TEST(TileQ4_K, EverySubBlockHasItsScaleAndMinimum) {
    TileQ4_K tile{};
    const int r = 7;
    tile.d[r] = f32_to_f16(0.125f);
    tile.dmin[r] = f32_to_f16(0.5f);
    int scales[8], minima[8];
    for (int b = 0; b < 8; ++b) {
        scales[b] = (b * 9 + 5) & 63;
        minima[b] = 63 - b * 7;
        tile.lo[b][r] = static_cast<uint8_t>((scales[b] & 15) | ((minima[b] & 15) << 4));
        const int high = (scales[b] >> 4) | ((minima[b] >> 4) << 2);
        tile.hi[b / 2][r] = static_cast<uint8_t>(tile.hi[b / 2][r] | (b % 2 ? high << 4 : high));
        for (int k = 0; k < 16; ++k)
            tile.q[b][k / 4][r][k % 4] = static_cast<uint8_t>(((k + b) & 15) | (((k + 2 * b + 1) & 15) << 4));
    }
    const std::vector<float> values = decode(tile, 16, 256);
    for (int k = 0; k < 256; ++k) {
        const int b = k / 32, p = k % 32;
        const int code = p < 16 ? (p + b) & 15 : (p - 16 + 2 * b + 1) & 15;
        const float wanted = 0.125f * static_cast<float>(scales[b] * code) - 0.5f * static_cast<float>(minima[b]);
        EXPECT_EQ(values[static_cast<size_t>(r * 256 + k)], wanted) << k;
    }
}

TEST(TileQ6_K, SixBitCodesAreSplitInFourAndTwo) {
    TileQ6_K tile{};
    const int r = 2;
    tile.d[r] = f32_to_f16(0.5f);
    auto code = [](int k) { return (k * 5 + 3) & 63; };
    for (int b = 0; b < 8; ++b) {
        for (int p = 0; p < 16; ++p)
            tile.lo[b][p / 4][r][p % 4] =
                static_cast<uint8_t>((code(32 * b + p) & 15) | ((code(32 * b + p + 16) & 15) << 4));
        for (int h = 0; h < 2; ++h)
            for (int j = 0; j < 4; ++j) {
                int byte = 0, shift = 0;
                for (int p : {8 * h + j, 8 * h + 4 + j, 16 + 8 * h + j, 20 + 8 * h + j}) {
                    byte |= (code(32 * b + p) >> 4) << shift;
                    shift += 2;
                }
                tile.hi[b][h][r][j] = static_cast<uint8_t>(byte);
            }
    }
    for (int s = 0; s < 16; ++s) tile.sc[s][r] = static_cast<int8_t>(s * 16 - 128);
    const std::vector<float> values = decode(tile, 16, 256);
    for (int k = 0; k < 256; ++k) {
        const auto wanted = 0.5f * static_cast<float>((k / 16) * 16 - 128) * static_cast<float>(code(k) - 32);
        EXPECT_EQ(values[static_cast<size_t>(r * 256 + k)], wanted) << k;
    }
}

// Where a tile lies: 16 rows side by side, their K blocks from left to right, then the next 16 rows.
TEST(TileGrid, RowTilesAreOutermost) {
    const int64_t n_out = 33, n_in = 70;  // 3 row tiles, 3 K blocks
    std::vector<TileQ8_0> tiles(9);
    for (size_t t = 0; t < tiles.size(); ++t)
        for (int r = 0; r < 16; ++r) {
            tiles[t].d[r] = f32_to_f16(1.0f);
            std::memset(tiles[t].q, static_cast<int>(t) * 10, sizeof tiles[t].q);
        }
    std::vector<float> values(static_cast<size_t>(n_out * n_in));
    dequantize_rows(DType::Q8_0, std::as_bytes(std::span(tiles)), n_out, n_in, 0, n_out, values.data());
    for (int64_t row = 0; row < n_out; ++row)
        for (int64_t column = 0; column < n_in; ++column)
            EXPECT_EQ(values[static_cast<size_t>(row * n_in + column)],
                      static_cast<float>(10 * (3 * (row / 16) + column / 32)));

    std::vector<float> middle(static_cast<size_t>(5 * n_in));
    dequantize_rows(DType::Q8_0, std::as_bytes(std::span(tiles)), n_out, n_in, 14, 5, middle.data());
    EXPECT_TRUE(std::equal(middle.begin(), middle.end(), values.begin() + 14 * n_in));
}

}  // namespace
}  // namespace ggmlx
