#pragma once
// y = W x for weights stored in tiles. Per output row there are eight partial sums; block b goes into partial b mod 8
// with one fused multiply-add (two for types with a minimum), and the eight are added pairwise at the end: the order of
// ggmlx/reference, so the bits do not depend on the ISA, the number of columns or how rows are cut over threads. A
// matrix with fewer partial sums (MatmulArgs) walks through its blocks as many at a time; the sums it lacks are -0,
// which changes nothing when it is added.

#include "ggmlx/backend/cpu/kernels/tiles.inl.h"

namespace ggmlx {

/// Eight partial sums of one row tile and N columns.
template <class Isa, int N>
struct TileSums {
    static constexpr int kParts = 16 / Isa::kRows;
    typename Isa::Rows at[N][8][kParts];

    void clear(int n_partials) {
        for (auto& column : at)
            for (int p = 0; p < 8; ++p)
                for (auto& rows : column[p]) rows = Isa::splat_rows(p < n_partials ? 0.0f : -0.0f);
    }

    /// Adds the partials (0+4, 1+5, 2+6, 3+7, then +2, then +1) and writes the tile's rows that exist.
    void store(const MatmulArgs& args, const Column* columns, int64_t tile) {
        const int64_t first_row = 16 * tile;
        const int n_rows = args.n_out - first_row < 16 ? static_cast<int>(args.n_out - first_row) : 16;
        for (int c = 0; c < N; ++c) {
            alignas(64) float y[16];
            for (int part = 0; part < kParts; ++part) {
                for (int width = 4; width > 0; width /= 2)
                    for (int p = 0; p < width; ++p) at[c][p][part] = Isa::add(at[c][p][part], at[c][p + width][part]);
                Isa::store_rows(y + part * Isa::kRows, at[c][0][part]);
            }
            float* out = columns[c].y + first_row;
            for (int r = 0; r < n_rows; ++r) out[r] = args.bias ? y[r] + args.bias[first_row + r] : y[r];
        }
    }
};

/// Asks for the bytes that come some way after those at p, as many as are worked on now. The processor's own prefetcher
/// stops at 4 KiB pages. Past the end of a row lies the next one, which is read next.
template <class Isa>
void prefetch_ahead(const void* p, int64_t n_bytes) {
    constexpr int64_t kAhead = 4096, kLine = 64;
    const char* ahead = static_cast<const char*>(p) + kAhead;
    for (int64_t i = 0; i < n_bytes; i += kLine) Isa::prefetch(ahead + i);
}

/// Up to n_partials consecutive 32-value blocks of one part of the rows, for N columns. b: the first block within the
/// row of x, a multiple of n_partials. Taking one part at a time keeps what is live within sixteen registers.
template <class Isa, class Tile, int N>
void add_blocks(const Tile* tiles, int n_blocks, int64_t b, const Column* columns, int part, TileSums<Isa, N>& sums) {
    using Math = TileMath<Isa, Tile>;
    const int row = part * Isa::kRows;
    for (int p = 0; p < n_blocks; ++p) {
        const Tile& tile = Math::kSubBlocks == 8 ? *tiles : tiles[p];
        const int sub = Math::kSubBlocks == 8 ? p : 0;
        typename Isa::Bytes w[8];
        Math::load(tile, sub, row, w);
        const auto scale = Math::scale(tile, sub, row);
        for (int c = 0; c < N; ++c) {
            const ActivationBlock& x = static_cast<const ActivationBlock*>(columns[c].x)[b + p];
            const auto product = Isa::to_rows(Math::dot(tile, sub, row, w, x));
            auto sum = Isa::fma(product, Isa::mul(scale, Isa::splat_rows(x.scale)), sums.at[c][p][part]);
            if constexpr (Math::kHasMin) {
                const auto addend = Isa::mul(Math::addend(tile, sub, row), Isa::splat_rows(x.scale));
                sum = Isa::fma(Isa::splat_rows(x.sum), addend, sum);
            }
            sums.at[c][p][part] = sum;
        }
    }
}

/// Whole: the matrix has all eight partial sums. Told at compile time, because then blocks are unrolled.
template <class Isa, class Tile, int N, bool Whole>
void matmul_tile_row(const MatmulArgs& args, const Column* columns, int64_t tile_row) {
    constexpr int kSub = TileMath<Isa, Tile>::kSubBlocks;
    const int64_t n_tiles = (args.n_in + 32 * kSub - 1) / (32 * kSub), n_blocks = n_tiles * kSub;
    const Tile* tiles = static_cast<const Tile*>(args.weight) + tile_row * n_tiles;
    TileSums<Isa, N> sums;
    const int n_partials = Whole ? 8 : args.n_partials;
    sums.clear(n_partials);
    for (int64_t b = 0; b < n_blocks; b += n_partials) {
        const int count = n_blocks - b < n_partials ? static_cast<int>(n_blocks - b) : n_partials;
        prefetch_ahead<Isa>(tiles + b / kSub, static_cast<int64_t>(sizeof(Tile)) * (kSub == 8 ? 1 : count));
        for (int part = 0; part < TileSums<Isa, N>::kParts; ++part)
            add_blocks<Isa, Tile, N>(tiles + b / kSub, count, b, columns, part, sums);
    }
    sums.store(args, columns, tile_row);
}

/// 4, 2 and 1 columns at a time.
template <class Isa, class Tile, bool Whole>
void matmul_tile_rows(const MatmulArgs& args, const Column* columns, int n_columns, int64_t begin, int64_t end) {
    for (int64_t tile_row = begin; tile_row < end; ++tile_row) {
        int c = 0;
        for (; n_columns - c >= 4; c += 4) matmul_tile_row<Isa, Tile, 4, Whole>(args, columns + c, tile_row);
        for (; n_columns - c >= 2; c += 2) matmul_tile_row<Isa, Tile, 2, Whole>(args, columns + c, tile_row);
        if (c < n_columns) matmul_tile_row<Isa, Tile, 1, Whole>(args, columns + c, tile_row);
    }
}

template <class Isa, class Tile>
void matmul_tiles(const MatmulArgs& args, const Column* columns, int n_columns, int64_t begin, int64_t end) noexcept {
    if constexpr (TileMath<Isa, Tile>::kSubBlocks == 1) {
        if (args.n_partials < 8) return matmul_tile_rows<Isa, Tile, false>(args, columns, n_columns, begin, end);
    }
    matmul_tile_rows<Isa, Tile, true>(args, columns, n_columns, begin, end);
}

}  // namespace ggmlx
