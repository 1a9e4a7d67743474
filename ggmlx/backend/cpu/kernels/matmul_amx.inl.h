#pragma once
// matmul_groups.inl.h on AMX: one instruction multiplies 32 values of 16 columns with those of 16 rows. The bytes of a
// panel block are a B tile as they are (K in groups of four), 16 activation blocks an A tile with a stride of 64 bytes.
// A block's products are exact integers; scaling and adding them stays vector work, in the same order.

#include "ggmlx/backend/cpu/kernels/matmul_groups.inl.h"

namespace ggmlx {

/// Shapes of the tile registers: 0 products, 1 activations, 2 weights; 3, 4, 5 the same for half a block.
struct alignas(64) AmxShapes {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 32, 64, 16, 64, 64};
    uint8_t rows[16] = {16, 16, 8, 16, 4, 16};
};
static_assert(sizeof(AmxShapes) == 64);

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

/// Partial sum p of a group's 16 columns. Products of the next block are under way while those of one are added.
template <class Isa, class Tile>
void amx_partial(const Tile* tiles, const PanelBlock* panel, int64_t n_blocks, int p, const ActivationBlock* x,
                 float (*sums)[16]) {
    using Math = TileMath<Isa, Tile>;
    AmxBlock<Isa, Tile> blocks[2];
    typename Isa::Rows sum[kGroupColumns];
    unroll<kGroupColumns>([&](auto c) __attribute__((always_inline)) { sum[c.value] = Isa::splat_rows(0.0f); });
    if (p < n_blocks) blocks[0].multiply(x + p * kGroupColumns, panel[p]);
    for (int64_t b = p, i = 0; b < n_blocks; b += 8, ++i) {
        if (b + 8 < n_blocks) blocks[(i + 1) & 1].multiply(x + (b + 8) * kGroupColumns, panel[b + 8]);
        const AmxBlock<Isa, Tile>& block = blocks[i & 1];
        const auto scale = Isa::load_rows(panel[b].scale);
        unroll<kGroupColumns>([&](auto c) __attribute__((always_inline)) {
            const ActivationBlock& column = x[b * kGroupColumns + c.value];
            Isa::prefetch(&column + kGroupColumns);
            const auto x_scale = Isa::splat_rows(column.scale);
            const auto product = Isa::to_rows(
                block.column(c.value, tiles[b / Math::kSubBlocks], static_cast<int>(b % Math::kSubBlocks)));
            sum[c.value] = Isa::fma(product, Isa::mul(scale, x_scale), sum[c.value]);
            if constexpr (Math::kHasMin) {
                const auto addend = Isa::mul(Isa::load_rows(panel[b].addend), x_scale);
                sum[c.value] = Isa::fma(Isa::splat_rows(column.sum), addend, sum[c.value]);
            }
        });
    }
    unroll<kGroupColumns>([&](auto c) __attribute__((always_inline)) { Isa::store_rows(sums[c.value], sum[c.value]); });
}

/// As int8_peak(), with whole tiles.
template <class Isa>
int64_t int8_peak_amx(int64_t n_rounds) noexcept {
    alignas(64) static constexpr uint8_t kBytes[1024] = {1, 2, 3};
    static constexpr AmxShapes kWhole{.row_bytes = {64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16}};
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
    static constexpr AmxShapes kShapes{};
    _tile_loadconfig(&kShapes);
    multiply_groups<Isa, Tile>(
        args, columns, begin, end, panels, sums,
        [](const Tile* tiles, const PanelBlock* panel, int64_t n_blocks, int p, const ActivationBlock* x, int,
           float(*out)[16]) { amx_partial<Isa, Tile>(tiles, panel, n_blocks, p, x, out); });
    _tile_release();
}

}  // namespace ggmlx
