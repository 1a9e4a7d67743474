#pragma once
// y = W x for many columns in bf16: sums over the whole of K stay in registers as float32. A panel and a group's blocks
// are read in the order in which they lie.

#include "ggmlx/backend/cpu/kernels/bf16_panels.inl.h"

namespace ggmlx {

/// N columns of a group and one part of the rows, with dot products of pairs.
template <class Isa, int N>
void add_bf16_columns(const Bf16Order<Isa>& order, const Bf16Block* x, const Bf16Panel* panel, int row,
                      float (*sums)[16]) {
    typename Isa::Rows sum[N];
    unroll<N>([&](auto c) __attribute__((always_inline)) { sum[c.value] = Isa::splat_rows(0.0f); });
    order.each_place([&](int64_t place) __attribute__((always_inline)) {
        const Bf16Block* block = x + place * kGroupColumns;
        for (int pair = 0; pair < 16; ++pair) {
            const auto w = Isa::load_bytes(panel[place].w[pair][row]);
            unroll<N>([&](auto c) __attribute__((always_inline)) {
                sum[c.value] = Isa::add_pairs(sum[c.value], w, block[c.value].x + 2 * pair);
            });
        }
    });
    unroll<N>([&](auto c) __attribute__((always_inline)) { Isa::store_rows(sums[c.value] + row, sum[c.value]); });
}

/// G groups and R row tiles, at most two each, with tile registers: sums[2 g + r].
template <class Isa, int G, int R>
void add_bf16_tiles(const Bf16Order<Isa>& order, const Bf16Block* x, const Bf16Panel* panel,
                    float (*sums)[kGroupColumns][16]) {
    const auto each = [](auto f) __attribute__((always_inline)) {
        unroll<G>([&](auto g) __attribute__((always_inline)) {
            unroll<R>([&](auto r) __attribute__((always_inline)) { f(g, r); });
        });
    };
    each([](auto g, auto r) __attribute__((always_inline)) { Isa::template clear<2 * g.value + r.value>(); });
    order.each_place([&](int64_t place) __attribute__((always_inline)) {
        unroll<G>([&](auto g) __attribute__((always_inline)) {
            Isa::template load<4 + g.value>(x + (g.value * order.size() + place) * kGroupColumns);
        });
        unroll<R>([&](auto r) __attribute__((always_inline)) {
            Isa::template load<6 + r.value>(panel + r.value * order.size() + place);
        });
        each([](auto g, auto r) __attribute__((always_inline)) { Isa::template multiply<g.value, r.value>(); });
    });
    each([&](auto g, auto r) __attribute__((always_inline)) {
        constexpr int kSum = 2 * g.value + r.value;
        Isa::template save<kSum>(sums[kSum]);
    });
}

/// All groups against row tiles whose panels are there. Decoding and multiplying are apart, so that a panel serves all
/// groups.
template <class Isa>
struct Bf16Product {
    const MatmulArgs& args;
    const ColumnGroups& columns;
    int64_t begin, end;  ///< row tiles
    Bf16Order<Isa> order;
    Bf16Panel* panels;

    const Bf16Block* group(int64_t g) const {
        return reinterpret_cast<const Bf16Block*>(columns.x) + g * order.size() * kGroupColumns;
    }
    Bf16Panel* panel(int64_t tile) const { return panels + (tile - begin) * order.size(); }
    int64_t n_groups() const { return (columns.n + kGroupColumns - 1) / kGroupColumns; }

    template <class Weights>
    void decode() const {
        for (int64_t tile = begin; tile < end; ++tile)
            order.each_block(0, order.n_blocks,
                             [&](int64_t b, int64_t place) { Weights::decode(args, tile, b, panel(tile)[place]); });
        asm volatile("" ::: "memory");  // AMX loads are not seen as reading the panels
    }
    void store(int64_t g, int64_t tile, const float (*sums)[16]) const {
        const int64_t first = g * kGroupColumns;
        for (int64_t c = first; c < columns.n && c < first + kGroupColumns; ++c)
            store_column<Isa>(args, columns, c, tile, sums[c - first]);
    }

    void multiply_pairs() const {
        alignas(64) float sums[kGroupColumns][16];
        for (int64_t g = 0; g < n_groups(); ++g)
            for (int64_t tile = begin; tile < end; ++tile) {
                const bool few = columns.n - g * kGroupColumns <= 8;
                for (int row = 0; row < 16; row += Isa::kRows) {
                    if (few)
                        add_bf16_columns<Isa, 8>(order, group(g), panel(tile), row, sums);
                    else
                        add_bf16_columns<Isa, 16>(order, group(g), panel(tile), row, sums);
                }
                store(g, tile, sums);
            }
    }

    template <int G, int R>
    void multiply_registers(int64_t g, int64_t tile) const {
        alignas(64) float sums[4][kGroupColumns][16];
        add_bf16_tiles<Isa, G, R>(order, group(g), panel(tile), sums);
        for (int i = 0; i < G; ++i)
            for (int r = 0; r < R; ++r) store(g + i, tile + r, sums[2 * i + r]);
    }
    void multiply_tiles() const {
        for (int64_t g = 0; g < n_groups(); g += 2)
            for (int64_t tile = begin; tile < end; tile += 2) {
                const bool two_groups = n_groups() - g > 1, two_tiles = end - tile > 1;
                if (two_groups && two_tiles)
                    multiply_registers<2, 2>(g, tile);
                else if (two_groups)
                    multiply_registers<2, 1>(g, tile);
                else if (two_tiles)
                    multiply_registers<1, 2>(g, tile);
                else
                    multiply_registers<1, 1>(g, tile);
            }
    }
};

template <class Isa, class Weights>
Bf16Product<Isa> make_bf16_product(const MatmulArgs& args, const ColumnGroups& columns, int64_t begin, int64_t end,
                                   Bf16Panel* panels) {
    return {args, columns, begin, end, {Weights::n_blocks(args.n_in), args.n_partials}, panels};
}

/// Bf16Kernels::matmul with vdpbf16ps.
template <class Isa, class Weights>
void matmul_bf16_pairs(const MatmulArgs& args, const ColumnGroups& columns, int64_t begin, int64_t end,
                       Bf16Panel* panels) noexcept {
    const auto product = make_bf16_product<Isa, Weights>(args, columns, begin, end, panels);
    product.template decode<Weights>();
    product.multiply_pairs();
}

/// Bf16Kernels::matmul with tdpbf16ps.
template <class Isa, class Weights>
void matmul_bf16_tiles(const MatmulArgs& args, const ColumnGroups& columns, int64_t begin, int64_t end,
                       Bf16Panel* panels) noexcept {
    const auto product = make_bf16_product<Isa, Weights>(args, columns, begin, end, panels);
    product.template decode<Weights>();
    Isa::configure();
    product.multiply_tiles();
    Isa::release();
}

/// Kernels with vdpbf16ps. It does half the multiply-adds of vpdpbusd, so types with integer products keep those.
template <class Isa>
constexpr Bf16Kernels make_bf16_pairs(const char* name) {
    Bf16Kernels k{name, {}, round_row<Isa>};
    k.matmul[static_cast<int>(DType::MXFP8)] = matmul_bf16_pairs<Isa, Bf16Floats8<Isa>>;
    k.matmul[static_cast<int>(DType::BF16)] = matmul_bf16_pairs<Isa, Bf16Plain<Isa, false>>;
    k.matmul[static_cast<int>(DType::F16)] = matmul_bf16_pairs<Isa, Bf16Plain<Isa, true>>;
    return k;
}

/// Kernels with tdpbf16ps, for these types and those with integer quants and one scale per block.
template <class Isa>
constexpr Bf16Kernels make_bf16_tiles(const char* name) {
    Bf16Kernels k{name, {}, round_row<Isa>};
    for_each_tile([&](auto of) {
        using Tile = typename decltype(of)::Tile;
        if constexpr (TileMath<Isa, Tile>::kDotsOffset >= 0)
            k.matmul[static_cast<int>(Tile::kType)] = matmul_bf16_tiles<Isa, Bf16Quants<Isa, Tile>>;
    });
    k.matmul[static_cast<int>(DType::MXFP4)] = matmul_bf16_tiles<Isa, Bf16Floats4<Isa>>;
    k.matmul[static_cast<int>(DType::MXFP8)] = matmul_bf16_tiles<Isa, Bf16Floats8<Isa>>;
    k.matmul[static_cast<int>(DType::BF16)] = matmul_bf16_tiles<Isa, Bf16Plain<Isa, false>>;
    k.matmul[static_cast<int>(DType::F16)] = matmul_bf16_tiles<Isa, Bf16Plain<Isa, true>>;
    return k;
}

}  // namespace ggmlx
