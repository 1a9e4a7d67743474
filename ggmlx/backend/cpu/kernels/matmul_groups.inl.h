#pragma once
// y = W x for many columns, in the order of matmul_tiles.inl.h. Each partial sum is taken on its own, over all blocks
// that belong to it: then one accumulator per column is live, enough columns fit the registers to make the decoded
// weights' loads cheap, and the blocks of x that a partial sum reads stay in the first-level cache over several row
// tiles.

#include "ggmlx/backend/cpu/kernels/panels.inl.h"

namespace ggmlx {

/// Calls f(Index<0>), … f(Index<N - 1>), unrolled.
template <int I>
struct Index {
    static constexpr int value = I;
};
template <int N, int I = 0, class F>
__attribute__((always_inline)) inline void unroll(const F& f) {
    if constexpr (I < N) {
        f(Index<I>{});
        unroll<N, I + 1>(f);
    }
}

/// Partial sum p of N columns that begin at x (stride kGroupColumns) for one part of the rows.
template <class Isa, class Tile, int N>
void add_partial(const Tile* tiles, const PanelBlock* panel, int64_t n_blocks, int p, int row, const ActivationBlock* x,
                 float (*sums)[16]) {
    using Math = TileMath<Isa, Tile>;
    typename Isa::Rows sum[N];
    unroll<N>([&](auto c) __attribute__((always_inline)) { sum[c.value] = Isa::splat_rows(0.0f); });
    for (int64_t b = p; b < n_blocks; b += 8) {
        typename Isa::Bytes w[8];
        unroll<8>([&](auto g)
                      __attribute__((always_inline)) { w[g.value] = Isa::load_bytes(panel[b].w[g.value][row]); });
        const auto scale = Isa::load_rows(panel[b].scale + row);
        const Tile& tile = tiles[b / Math::kSubBlocks];
        const int sub = static_cast<int>(b % Math::kSubBlocks);
        unroll<N>([&](auto c) __attribute__((always_inline)) {
            const ActivationBlock& block = x[b * kGroupColumns + c.value];
            Isa::prefetch(&block + kGroupColumns);  // the next partial sum's: too far apart for the processor to guess
            const auto x_scale = Isa::splat_rows(block.scale);
            const auto product = Isa::to_rows(Math::dot(tile, sub, row, w, block));
            sum[c.value] = Isa::fma(product, Isa::mul(scale, x_scale), sum[c.value]);
            if constexpr (Math::kHasMin) {
                const auto addend = Isa::mul(Isa::load_rows(panel[b].addend + row), x_scale);
                sum[c.value] = Isa::fma(Isa::splat_rows(block.sum), addend, sum[c.value]);
            }
        });
    }
    unroll<N>([&](auto c) __attribute__((always_inline)) { Isa::store_rows(sums[c.value] + row, sum[c.value]); });
}

/// Partial sum p of the first n of a group's columns, as many at a time as the registers hold; a few more may be
/// computed.
template <class Isa, class Tile>
void add_group_partial(const Tile* tiles, const PanelBlock* panel, int64_t n_blocks, int p, const ActivationBlock* x,
                       int n, float (*sums)[16]) {
    constexpr int kMost = Isa::kColumnsInRegisters;
    for (int row = 0; row < 16; row += Isa::kRows) {
        for (int c = 0; c < n;) {
            if (kMost >= 16 && n - c > 8) {
                add_partial<Isa, Tile, kMost>(tiles, panel, n_blocks, p, row, x + c, sums + c);
                c += kMost;
            } else if (kMost >= 8 && n - c > 4) {
                add_partial<Isa, Tile, kMost >= 8 ? 8 : kMost>(tiles, panel, n_blocks, p, row, x + c, sums + c);
                c += 8;
            } else {
                add_partial<Isa, Tile, 4>(tiles, panel, n_blocks, p, row, x + c, sums + c);
                c += 4;
            }
        }
    }
}

/// All groups against row tiles [begin, end). add_partial(tiles, panel, n_blocks, p, x, n, sums) adds partial sum p of
/// a group's first n columns.
template <class Isa, class Tile, class F>
void multiply_groups(const MatmulArgs& args, const ColumnGroups& columns, int64_t begin, int64_t end,
                     PanelBlock* panels, PanelSums* sums, F add_partial) {
    const int64_t n_blocks = n_panel_blocks<Isa, Tile>(args.n_in);
    const int64_t n_tiles = n_blocks / TileMath<Isa, Tile>::kSubBlocks;
    const Tile* tiles = static_cast<const Tile*>(args.weight) + begin * n_tiles;
    for (int64_t t = 0; t < end - begin; ++t)
        decode_panel<Isa, Tile>(tiles + t * n_tiles, n_blocks, panels + t * n_blocks);
    asm volatile("" ::: "memory");  // AMX loads are not seen as reading the panels
    for (int64_t first = 0; first < columns.n; first += kGroupColumns) {
        const ActivationBlock* x = columns.x + first * n_blocks;
        const int n = columns.n - first < kGroupColumns ? static_cast<int>(columns.n - first) : kGroupColumns;
        for (int p = 0; p < 8; ++p)
            for (int64_t t = 0; t < end - begin; ++t)
                add_partial(tiles + t * n_tiles, panels + t * n_blocks, n_blocks, p, x, n, sums[t].at[p]);
        for (int64_t t = 0; t < end - begin; ++t) store_group<Isa>(args, columns, first, n, begin + t, sums[t]);
    }
}

template <class Isa, class Tile>
void matmul_groups(const MatmulArgs& args, const ColumnGroups& columns, int64_t begin, int64_t end, PanelBlock* panels,
                   PanelSums* sums) noexcept {
    multiply_groups<Isa, Tile>(args, columns, begin, end, panels, sums, add_group_partial<Isa, Tile>);
}

}  // namespace ggmlx
