#pragma once
// matmul_groups.inl.h on AMX: one instruction multiplies 32 values of 16 columns with those of 16 rows. The bytes of a
// panel block are a B tile as they are (K in groups of four), 16 activation blocks an A tile with a stride of 64 bytes.
// A block's products are exact integers; scaling and adding them stays vector work, in the same order.

#include "ggmlx/backend/cpu/kernels/matmul_groups.inl.h"
#include "ggmlx/backend/cpu/simd/amx_shapes.h"

namespace ggmlx {

/// Tile registers: 0 products, 1 activations, 2 weights; 3, 4, 5 the same for half a block.
inline constexpr AmxShapes kAmxBlockShapes{.row_bytes = {64, 32, 64, 16, 64, 64}, .rows = {16, 16, 8, 16, 4, 16}};

using AmxProducts = int32_t[kGroupColumns][16];

/// products[c][r] = Σ w q over a block.
template <class Isa>
void amx_block(const ActivationBlock* x, const PanelBlock& w, AmxProducts& products) {
    _tile_zero(0);
    _tile_loadd(1, x->q, sizeof(ActivationBlock));
    _tile_loadd(2, w.w, 64);
    _tile_dpbssd(0, 1, 2);
    _tile_stored(0, products, 64);
}

/// The same for one half of a block (16 values).
template <class Isa>
void amx_half(const ActivationBlock* x, const PanelBlock& w, int half, AmxProducts& products) {
    _tile_zero(5);
    _tile_loadd(3, x->q + 16 * half, sizeof(ActivationBlock));
    _tile_loadd(4, w.w[4 * half], 64);
    _tile_dpbssd(5, 3, 4);
    _tile_stored(5, products, 64);
}

/// Products of one block, of types with one scale per block and of Q6_K with two.
template <class Isa, class Tile>
struct AmxBlock {
    alignas(64) AmxProducts products;
    void multiply(const ActivationBlock* x, const PanelBlock& w) { amx_block<Isa>(x, w, products); }
    auto column(int c, const Tile&, int) const { return Isa::load_bytes(products[c]); }
};
template <class Isa>
struct AmxBlock<Isa, TileQ6_K> {
    alignas(64) AmxProducts halves[2];
    void multiply(const ActivationBlock* x, const PanelBlock& w) {
        for (int half = 0; half < 2; ++half) amx_half<Isa>(x, w, half, halves[half]);
    }
    auto column(int c, const TileQ6_K& tile, int sub) const {
        return _mm512_add_epi32(_mm512_mullo_epi32(Isa::load_bytes(halves[0][c]), Isa::ints_s8(tile.sc[2 * sub])),
                                _mm512_mullo_epi32(Isa::load_bytes(halves[1][c]), Isa::ints_s8(tile.sc[2 * sub + 1])));
    }
};

/// All 16 columns of a group. Products of the next block are under way while those of one are added.
template <class Isa, class Tile>
void amx_partial(const Partial<Tile>& a, int, float (*sums)[16]) {
    using Math = TileMath<Isa, Tile>;
    AmxBlock<Isa, Tile> blocks[2];
    typename Isa::Rows sum[kGroupColumns];
    unroll<kGroupColumns>([&](auto c) __attribute__((always_inline)) { sum[c.value] = Isa::splat_rows(0.0f); });
    if (a.n_blocks > 0) blocks[0].multiply(a.x, a.panel[0]);
    for (int64_t i = 0; i < a.n_blocks; ++i) {
        const ActivationBlock* x = a.x + i * kGroupColumns;
        if (i + 1 < a.n_blocks) blocks[(i + 1) & 1].multiply(x + kGroupColumns, a.panel[i + 1]);
        const AmxBlock<Isa, Tile>& block = blocks[i & 1];
        const PanelBlock& panel = a.panel[i];
        const auto scale = Isa::load_rows(panel.scale);
        const Tile& tile = a.template tile<Math::kSubBlocks>(i);
        unroll<kGroupColumns>([&](auto c) __attribute__((always_inline)) {
            const auto x_scale = Isa::splat_rows(x[c.value].scale);
            const auto product = Isa::to_rows(block.column(c.value, tile, a.template sub<Math::kSubBlocks>()));
            sum[c.value] = Isa::fma(product, Isa::mul(scale, x_scale), sum[c.value]);
            if constexpr (Math::kHasMin) {
                const auto addend = Isa::mul(Isa::load_rows(panel.addend), x_scale);
                sum[c.value] = Isa::fma(Isa::splat_rows(x[c.value].sum), addend, sum[c.value]);
            }
        });
    }
    unroll<kGroupColumns>([&](auto c) __attribute__((always_inline)) { Isa::store_rows(sums[c.value], sum[c.value]); });
}

/// As int8_peak(), with whole tiles.
template <class Isa>
int64_t int8_peak_amx(int64_t n_rounds) noexcept {
    alignas(64) static constexpr uint8_t kBytes[1024] = {1, 2, 3};
    static constexpr AmxShapes kWhole{};
    _tile_loadconfig(&kWhole);
    _tile_loadd(4, kBytes, 64);
    _tile_loadd(5, kBytes, 64);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t round = 0; round < n_rounds; ++round) {
        _tile_dpbssd(0, 4, 5);
        _tile_dpbssd(1, 4, 5);
        _tile_dpbssd(2, 4, 5);
        _tile_dpbssd(3, 4, 5);
    }
    _tile_release();
    return n_rounds * 4 * 16 * 16 * 64;
}

template <class Isa, class Tile>
void matmul_groups_amx(const MatmulArgs& args, const ColumnGroups& columns, int64_t begin, int64_t end,
                       PanelBlock* panels, PanelSums* sums) noexcept {
    _tile_loadconfig(&kAmxBlockShapes);
    multiply_groups<Isa, Tile>(args, columns, begin, end, panels, sums, amx_partial<Isa, Tile>);
    _tile_release();
}

}  // namespace ggmlx
