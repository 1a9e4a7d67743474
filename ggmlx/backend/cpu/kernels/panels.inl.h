#pragma once
// Weights of a row tile decoded to bytes and float scales, once for many columns.

#include "ggmlx/backend/cpu/kernels/tiles.inl.h"

namespace ggmlx {

/// Decodes the row tile that begins at tiles, in the order of ColumnGroups; Isa says what the bytes look like.
template <class Isa, class Tile>
void decode_panel(const Tile* tiles, int64_t n_blocks, int n_partials, PanelBlock* panels) {
    using Math = TileMath<Isa, Tile>;
    const int shift = __builtin_ctz(static_cast<unsigned>(n_partials)), mask = n_partials - 1;
    const int64_t per_partial = (n_blocks + mask) >> shift;
    for (int64_t b = 0; b < n_blocks; ++b) {
        const Tile& tile = tiles[b / Math::kSubBlocks];
        const int sub = static_cast<int>(b % Math::kSubBlocks);
        PanelBlock& panel = panels[(b & mask) * per_partial + (b >> shift)];
        for (int row = 0; row < 16; row += Isa::kRows) {
            typename Isa::Bytes w[8];
            Math::load(tile, sub, row, w);
            for (int g = 0; g < 8; ++g)
                Isa::store_bytes(panel.w[g][row], Isa::template panel_bytes<Math::kOffset>(w[g]));
            Isa::store_rows(panel.scale + row, Math::scale(tile, sub, row));
            if constexpr (Math::kHasMin) Isa::store_rows(panel.addend + row, Math::addend(tile, sub, row));
        }
    }
}

/// Writes the rows of y that exist, of a column and row tile.
template <class Isa>
void store_column(const MatmulArgs& args, const ColumnGroups& columns, int64_t column, int64_t tile,
                  const float (&y)[16]) {
    const int64_t first_row = 16 * tile;
    const int n_rows = args.n_out - first_row < 16 ? static_cast<int>(args.n_out - first_row) : 16;
    float* out = columns.y + (columns.y_row ? columns.y_row[column] : column) * columns.y_stride + first_row;
    if (n_rows < 16) {
        for (int r = 0; r < n_rows; ++r) out[r] = args.bias ? y[r] + args.bias[first_row + r] : y[r];
        return;
    }
    for (int row = 0; row < 16; row += Isa::kRows) {
        const auto sums = Isa::load_rows(y + row);
        Isa::store_rows(out + row, args.bias ? Isa::add(sums, Isa::load_rows(args.bias + first_row + row)) : sums);
    }
}

/// Adds the partial sums of columns [0, n) pairwise and writes them. Sums that the matrix lacks count as -0, as in
/// TileSums.
template <class Isa>
void store_group(const MatmulArgs& args, const ColumnGroups& columns, int64_t first_column, int n, int64_t tile,
                 const PanelSums& sums) {
    for (int c = 0; c < n; ++c) {
        alignas(64) float y[16];
        for (int row = 0; row < 16; row += Isa::kRows) {
            const auto at = [&](int p) {
                return p < args.n_partials ? Isa::load_rows(sums.at[p][c] + row) : Isa::splat_rows(-0.0f);
            };
            const auto even = Isa::add(Isa::add(at(0), at(4)), Isa::add(at(2), at(6)));
            const auto odd = Isa::add(Isa::add(at(1), at(5)), Isa::add(at(3), at(7)));
            Isa::store_rows(y + row, Isa::add(even, odd));
        }
        store_column<Isa>(args, columns, first_column + c, tile, y);
    }
}

}  // namespace ggmlx
