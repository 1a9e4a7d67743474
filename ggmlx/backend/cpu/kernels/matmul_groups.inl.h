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

/// The blocks of one partial sum: panel and x (stride kGroupColumns) hold one after the other blocks p, p + step, ….
template <class Tile>
struct Partial {
    int p, step;
    int64_t n_blocks;
    const Tile* tiles;  ///< of the row tile
    const PanelBlock* panel;
    const ActivationBlock* x;

    /// Where block i of this partial sum is stored: a tile, or one of a tile's eight parts.
    template <int kSubBlocks>
    const Tile& tile(int64_t i) const {
        return tiles[kSubBlocks == 8 ? i : p + step * i];
    }
    template <int kSubBlocks>
    int sub() const {
        return kSubBlocks == 8 ? p : 0;
    }
};

/// Columns [first, first + N) for one part of the rows.
template <class Isa, class Tile, int N>
void add_partial(const Partial<Tile>& a, int row, int first, float (*sums)[16]) {
    using Math = TileMath<Isa, Tile>;
    constexpr int kAtOnce = Isa::kColumnsAtOnce;
    typename Isa::Rows sum[N];
    unroll<N>([&](auto c) __attribute__((always_inline)) { sum[c.value] = Isa::splat_rows(0.0f); });
    const ActivationBlock* x = a.x + first;
    for (int64_t i = 0; i < a.n_blocks; ++i, x += kGroupColumns) {
        const PanelBlock& panel = a.panel[i];
        typename Isa::Bytes w[8];
        unroll<8>([&](auto g) __attribute__((always_inline)) { w[g.value] = Isa::load_bytes(panel.w[g.value][row]); });
        const auto scale = Isa::load_rows(panel.scale + row);
        const Tile& tile = a.template tile<Math::kSubBlocks>(i);
        unroll<N / kAtOnce>([&](auto q) __attribute__((always_inline)) {
            constexpr int kFirst = q.value * kAtOnce;
            typename Isa::Ints products[kAtOnce];
            multiply_block<Isa>(tile, a.template sub<Math::kSubBlocks>(), row, w, x + kFirst, products);
            unroll<kAtOnce>([&](auto c) __attribute__((always_inline)) {
                const ActivationBlock& block = x[kFirst + c.value];
                auto& partial = sum[kFirst + c.value];
                const auto x_scale = Isa::splat_rows(block.scale);
                partial = Isa::fma(Isa::to_rows(products[c.value]), Isa::mul(scale, x_scale), partial);
                if constexpr (Math::kHasMin) {
                    const auto addend = Isa::mul(Isa::load_rows(panel.addend + row), x_scale);
                    partial = Isa::fma(Isa::splat_rows(block.sum), addend, partial);
                }
            });
        });
    }
    unroll<N>([&](auto c)
                  __attribute__((always_inline)) { Isa::store_rows(sums[first + c.value] + row, sum[c.value]); });
}

/// The first n of a group's columns, as many at a time as the registers hold; a few more may be computed.
template <class Isa, class Tile>
void add_group_partial(const Partial<Tile>& a, int n, float (*sums)[16]) {
    constexpr int kMost = Isa::kColumnsInRegisters, kLeast = 4;
    for (int row = 0; row < 16; row += Isa::kRows) {
        int c = 0;
        for (; n - c > kLeast && kMost > kLeast; c += kMost) add_partial<Isa, Tile, kMost>(a, row, c, sums);
        for (; c < n; c += kLeast) add_partial<Isa, Tile, kLeast>(a, row, c, sums);
    }
}

/// All groups against row tiles [begin, end). add_partial(partial, n, sums) takes a group's first n columns.
template <class Isa, class Tile, class F>
void multiply_groups(const MatmulArgs& args, const ColumnGroups& columns, int64_t begin, int64_t end,
                     PanelBlock* panels, PanelSums* sums, F add_partial) {
    constexpr int kSub = TileMath<Isa, Tile>::kSubBlocks;
    const int64_t n_tiles = (args.n_in + 32 * kSub - 1) / (32 * kSub), n_blocks = n_tiles * kSub;
    const int n_partials = args.n_partials;
    const int64_t per_partial = (n_blocks + n_partials - 1) / n_partials, padded = n_partials * per_partial;
    const Tile* tiles = static_cast<const Tile*>(args.weight) + begin * n_tiles;
    for (int64_t t = 0; t < end - begin; ++t)
        decode_panel<Isa, Tile>(tiles + t * n_tiles, n_blocks, n_partials, panels + t * padded);
    asm volatile("" ::: "memory");  // AMX loads are not seen as reading the panels
    for (int64_t first = 0; first < columns.n; first += kGroupColumns) {
        const ActivationBlock* x = columns.x + first / kGroupColumns * padded * kGroupColumns;
        const int n = columns.n - first < kGroupColumns ? static_cast<int>(columns.n - first) : kGroupColumns;
        for (int p = 0; p < n_partials; ++p)
            for (int64_t t = 0; t < end - begin; ++t)
                add_partial(
                    Partial<Tile>{p, n_partials, (n_blocks - p + n_partials - 1) / n_partials, tiles + t * n_tiles,
                                  panels + t * padded + p * per_partial, x + p * per_partial * kGroupColumns},
                    n, sums[t].at[p]);
        for (int64_t t = 0; t < end - begin; ++t) store_group<Isa>(args, columns, first, n, begin + t, sums[t]);
    }
}

template <class Isa, class Tile>
void matmul_groups(const MatmulArgs& args, const ColumnGroups& columns, int64_t begin, int64_t end, PanelBlock* panels,
                   PanelSums* sums) noexcept {
    multiply_groups<Isa, Tile>(args, columns, begin, end, panels, sums, add_group_partial<Isa, Tile>);
}

}  // namespace ggmlx
