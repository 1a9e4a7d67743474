#include "convert/gguf/pack.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "convert/gguf/scales.h"
#include "ggmlx/core/error.h"
#include "ggmlx/core/parallel.h"
#include "ggmlx/quant/blocks.h"
#include "ggmlx/quant/encode.h"

namespace convert {

using ggmlx::TileMXFP4;
using ggmlx::TileQ4_0;
using ggmlx::TileQ4_1;
using ggmlx::TileQ4_K;
using ggmlx::TileQ6_K;
using ggmlx::TileQ8_0;

namespace {

using ggmlx::ErrorKind;
using ggmlx::kTileRows;

/// From here on some product of a scale and twice an E2M1 value is infinite.
constexpr int kMaxMxfp4Exponent = 252;

int low_nibble(std::byte b) { return std::to_integer<int>(b) & 15; }
int high_nibble(std::byte b) { return std::to_integer<int>(b) >> 4; }

/// 32 codes whose low nibbles are values 0-15 and whose high nibbles are values 16-31, as in all types with 32 values.
void pack_nibbles(const std::byte* codes, uint8_t (&q)[4][16][4], int r) {
    for (int i = 0; i < 16; ++i) q[i >> 2][r][i & 3] = std::to_integer<uint8_t>(codes[i]);
}

/// Fills the row tile that begins at row `first`.
template <class Tile>
void pack_row_tile(const PackJob& job, int64_t first, std::byte* dst) {
    const int64_t block_len = ggmlx::info(Tile::kType).block_len, n_blocks = job.n_in / block_len;
    const int64_t n_rows = std::min<int64_t>(kTileRows, job.n_out - first);
    const std::byte* rows[kTileRows];
    for (int64_t r = 0; r < n_rows; ++r) rows[r] = job.row(first + r);
    for (int64_t b = 0; b < n_blocks; ++b) {
        Tile tile{};
        for (int64_t r = 0; r < n_rows; ++r)
            ggmlx::require(pack_block(rows[r] + b * job.block_bytes, tile, static_cast<int>(r)), ErrorKind::CorruptFile,
                           "tensor \"{}\" has a scale that is not finite in row {}, column {}; weights must be finite",
                           job.name, first + r, b * block_len);
        std::memcpy(dst + b * static_cast<int64_t>(sizeof tile), &tile, sizeof tile);
    }
}

}  // namespace

bool pack_block(const std::byte* block, TileQ8_0& tile, int r) {
    tile.d[r] = load_u16(block);
    for (int k = 0; k < 32; ++k) tile.q[k >> 2][r][k & 3] = std::to_integer<int8_t>(block[2 + k]);
    return is_finite_f16(tile.d[r]);
}

bool pack_block(const std::byte* block, TileQ4_0& tile, int r) {
    tile.d[r] = load_u16(block);
    pack_nibbles(block + 2, tile.q, r);
    return is_finite_f16(tile.d[r]);
}

bool pack_block(const std::byte* block, TileQ4_1& tile, int r) {
    tile.d[r] = load_u16(block);
    tile.m[r] = load_u16(block + 2);
    pack_nibbles(block + 4, tile.q, r);
    return is_finite_f16(tile.d[r]) && is_finite_f16(tile.m[r]);
}

/// d, dmin, 12 bytes of scales, then 32 bytes for each pair of sub-blocks: the first in the low nibbles.
bool pack_block(const std::byte* block, TileQ4_K& tile, int r) {
    tile.d[r] = load_u16(block);
    tile.dmin[r] = load_u16(block + 2);
    const std::byte *scales = block + 4, *codes = block + 16;
    for (int pair = 0; pair < 4; ++pair) {
        int8_t low[32], high[32];
        for (int i = 0; i < 32; ++i) {
            low[i] = static_cast<int8_t>(low_nibble(codes[pair * 32 + i]));
            high[i] = static_cast<int8_t>(high_nibble(codes[pair * 32 + i]));
        }
        ggmlx::store_nibbles(low, tile.q[2 * pair], r);
        ggmlx::store_nibbles(high, tile.q[2 * pair + 1], r);
        const ScaleAndMin even = scale_and_min(scales, 2 * pair), odd = scale_and_min(scales, 2 * pair + 1);
        tile.lo[2 * pair][r] = static_cast<uint8_t>((even.scale & 15) | (even.min & 15) << 4);
        tile.lo[2 * pair + 1][r] = static_cast<uint8_t>((odd.scale & 15) | (odd.min & 15) << 4);
        tile.hi[pair][r] = static_cast<uint8_t>((even.scale >> 4) | (even.min >> 4) << 2 | (odd.scale >> 4) << 4 |
                                                (odd.min >> 4) << 6);
    }
    return is_finite_f16(tile.d[r]) && is_finite_f16(tile.dmin[r]);
}

/// 128 bytes of low bits, 64 of high bits, 16 scales, d. Each half of 128 values is four sub-blocks: value i (0-31) of
/// sub-block s has its low bits in byte i + 32 (s % 2), low nibble for s < 2, and its high bits in bits 2s of byte i.
bool pack_block(const std::byte* block, TileQ6_K& tile, int r) {
    const std::byte* scales = block + 192;
    for (int b = 0; b < 8; ++b) {
        const int s = b & 3;
        const std::byte* low_bytes = block + (b >> 2) * 64 + (s & 1) * 32;
        const std::byte* high_bytes = block + 128 + (b >> 2) * 32;
        int8_t low[32];
        for (int i = 0; i < 32; ++i)
            low[i] = static_cast<int8_t>(s < 2 ? low_nibble(low_bytes[i]) : high_nibble(low_bytes[i]));
        ggmlx::store_nibbles(low, tile.lo[b], r);
        auto high = [&](int k) { return std::to_integer<int>(high_bytes[k]) >> (2 * s) & 3; };
        for (int k = 0; k < 16; k += 8)  // byte [h][r][j]: k = 8h+j, 8h+4+j, 16+8h+j, 20+8h+j
            for (int j = k; j < k + 4; ++j)
                tile.hi[b][k / 8][r][j - k] =
                    static_cast<uint8_t>(high(j) | high(j + 4) << 2 | high(16 + j) << 4 | high(20 + j) << 6);
    }
    for (int i = 0; i < 16; ++i) tile.sc[i][r] = std::to_integer<int8_t>(scales[i]);
    tile.d[r] = load_u16(block + 208);
    return is_finite_f16(tile.d[r]);
}

bool pack_block(const std::byte* block, TileMXFP4& tile, int r) {
    tile.e[r] = std::to_integer<uint8_t>(block[0]);
    pack_nibbles(block + 1, tile.q, r);
    return tile.e[r] <= kMaxMxfp4Exponent;
}

void pack_matrix(const PackJob& job, std::span<std::byte> dst, int n_threads) {
    const ggmlx::TileGrid grid = ggmlx::tile_grid(job.dtype, job.n_out, job.n_in);
    const int64_t row_tile_bytes = grid.n_k_blocks * ggmlx::info(job.dtype).tile_bytes();
    ggmlx::parallel_for(grid.n_row_tiles, n_threads, [&](int64_t t) {
        ggmlx::with_tile(job.dtype, [&]<class Tile>(const Tile*) {
            if constexpr (std::is_same_v<Tile, ggmlx::TileMXFP8>)
                ggmlx::fail(ErrorKind::InvalidArgument, "GGUF has no mxfp8");
            else
                pack_row_tile<Tile>(job, t * kTileRows, dst.data() + t * row_tile_bytes);
        });
    });
}

}  // namespace convert
