#pragma once
// Weights of a row tile rounded to bf16, once for many columns, and the same for rows of activations. A block's 16
// pairs of values lie as tile registers and dot products of pairs want them: pair by pair, the 16 rows side by side.

#include <utility>

#include "ggmlx/backend/cpu/kernels/matmul_groups.inl.h"
#include "ggmlx/backend/cpu/simd/bf16_e2m1.h"

namespace ggmlx {

/// Where the blocks of a row tile, or of a column of a group, lie (ColumnGroups): parts of the same size, one for each
/// partial sum of exact products, of which the last places may be empty.
template <class Isa>
struct Bf16Order {
    int64_t n_blocks;
    int n_parts;  ///< MatmulArgs::n_partials

    int64_t part_size() const { return (n_blocks + n_parts - 1) / n_parts; }
    int64_t size() const { return n_parts * part_size(); }
    /// Calls f(place) for every block, in the order of places.
    template <class F>
    __attribute__((always_inline)) void each_place(const F& f) const {
        for (int part = 0; part < n_parts; ++part) {
            const int64_t begin = part * part_size(), end = begin + (n_blocks - part + n_parts - 1) / n_parts;
            for (int64_t place = begin; place < end; ++place) f(place);
        }
    }
    /// Calls f(block, place) for blocks [begin, end).
    template <class F>
    void each_block(int64_t begin, int64_t end, const F& f) const {
        const int shift = __builtin_ctz(static_cast<unsigned>(n_parts));
        const int64_t mask = n_parts - 1, per_part = part_size();
        for (int64_t b = begin; b < end; ++b) f(b, (b & mask) * per_part + (b >> shift));
    }
};

/// A weight matrix of tiles with integer quants; kDotsOffset is what load() adds to them.
template <class Isa, class Tile>
struct Bf16Quants {
    using Math = TileMath<Isa, Tile>;
    using Rows = typename Isa::Rows;
    static constexpr int64_t kValues = 32 * Math::kSubBlocks;  ///< along a row of one tile
    static_assert(Math::kDotsOffset >= 0, "one scale per block");

    static int64_t n_blocks(int64_t n_in) { return (n_in + kValues - 1) / kValues * Math::kSubBlocks; }
    static void decode(const MatmulArgs& args, int64_t row_tile, int64_t b, Bf16Panel& panel) {
        const int64_t n_tiles = n_blocks(args.n_in) / Math::kSubBlocks;
        const Tile& tile = static_cast<const Tile*>(args.weight)[row_tile * n_tiles + b / Math::kSubBlocks];
        const int sub = static_cast<int>(b % Math::kSubBlocks);
        for (int row = 0; row < 16; row += Isa::kRows) {
            typename Isa::Bytes w[8];
            Math::load(tile, sub, row, w);
            const Rows scale = Math::scale(tile, sub, row);
            Rows addend;
            if constexpr (Math::kHasMin)
                addend = Math::addend(tile, sub, row);
            else
                addend = Isa::mul(scale, Isa::splat_rows(-static_cast<float>(Math::kDotsOffset)));
            for (int g = 0; g < 8; ++g) {
                Isa::store_pairs(panel.w[2 * g][row], value<0>(w[g], scale, addend), value<1>(w[g], scale, addend));
                Isa::store_pairs(panel.w[2 * g + 1][row], value<2>(w[g], scale, addend), value<3>(w[g], scale, addend));
            }
        }
    }

  private:
    template <int j>
    static Rows value(typename Isa::Bytes w, Rows scale, Rows addend) {
        return Isa::fma(Isa::template rows_u8<j>(w), scale, addend);
    }
};

/// MXFP4: a value is a bf16 found in a table, whose exponent is lowered by the row's; what is below 2^-126 becomes a
/// zero, or a number that the instructions take for one. 55 cycles a block instead of the 109 of Bf16Quants (llvm-mca,
/// Xeon), which does tiles with powers so large that exponents had to be raised.
template <class Isa>
struct Bf16Floats4 {
    using Quants = Bf16Quants<Isa, TileMXFP4>;

    static int64_t n_blocks(int64_t n_in) { return Quants::n_blocks(n_in); }
    static void decode(const MatmulArgs& args, int64_t row_tile, int64_t b, Bf16Panel& panel) {
        const TileMXFP4& tile = static_cast<const TileMXFP4*>(args.weight)[row_tile * n_blocks(args.n_in) + b];
        if (Isa::any_above(tile.e, kLargestLoweredE8M0)) return Quants::decode(args, row_tile, b, panel);
        for (int row = 0; row < 16; row += Isa::kRows) {
            typename Isa::Bytes codes[8];
            load_nibbles<Isa>(tile.q, row, codes);
            const auto lowering = Isa::e2m1_lowering(tile.e + row);
            for (int g = 0; g < 8; ++g) {
                Isa::template store_e2m1_pairs<0>(panel.w[2 * g][row], codes[g], lowering);
                Isa::template store_e2m1_pairs<1>(panel.w[2 * g + 1][row], codes[g], lowering);
            }
        }
    }
};

/// MXFP8: every value is a bf16 as it is. A NaN code makes a block's first value a NaN, and so the row's sum.
template <class Isa>
struct Bf16Floats8 {
    using Rows = typename Isa::Rows;

    static int64_t n_blocks(int64_t n_in) { return (n_in + 31) / 32; }
    static void decode(const MatmulArgs& args, int64_t row_tile, int64_t b, Bf16Panel& panel) {
        const TileMXFP8& tile = static_cast<const TileMXFP8*>(args.weight)[row_tile * n_blocks(args.n_in) + b];
        for (int row = 0; row < 16; row += Isa::kRows) {
            typename Isa::Bytes w[8], nans = Isa::zero_bytes();
            for (int g = 0; g < 8; ++g) {
                w[g] = Isa::load_bytes(tile.q[g][row]);
                nans = Isa::or_f8_nans(nans, w[g]);
            }
            const Rows scale = Isa::rows_e8m0(tile.e + row), first = Isa::nan_where_any(nans, value<0>(w[0], scale));
            for (int g = 0; g < 8; ++g) {
                Isa::store_pairs(panel.w[2 * g][row], g == 0 ? first : value<0>(w[g], scale), value<1>(w[g], scale));
                Isa::store_pairs(panel.w[2 * g + 1][row], value<2>(w[g], scale), value<3>(w[g], scale));
            }
        }
    }

  private:
    template <int j>
    static Rows value(typename Isa::Bytes w, Rows scale) {
        return Isa::mul(scale, Isa::template rows_f8<j>(w));
    }
};

/// Sixteen pairs of bf16, a pair in each lane.
using PairLanes = int32_t __attribute__((vector_size(64)));

/// Lanes j with bit S of a, and without it of b, change places: one step of a transposition.
template <int S, int... j>
__attribute__((always_inline)) inline void exchange_lanes(PairLanes& a, PairLanes& b,
                                                          std::integer_sequence<int, j...>) {
    const PairLanes first = __builtin_shufflevector(a, b, ((j & S) == 0 ? j : 16 + j - S)...);
    b = __builtin_shufflevector(a, b, ((j & S) == 0 ? j + S : 16 + j)...);
    a = first;
}
template <class Isa, int S>
__attribute__((always_inline)) inline void transpose_step(PairLanes (&rows)[16]) {
    unroll<16>([&](auto i) __attribute__((always_inline)) {
        if constexpr ((i.value & S) == 0)
            exchange_lanes<S>(rows[i.value], rows[i.value + S], std::make_integer_sequence<int, 16>());
    });
}

/// A matrix of plain rows, of bf16 or f16.
template <class Isa, bool is_f16>
struct Bf16Plain {
    static int64_t n_blocks(int64_t n_in) { return (n_in + 31) / 32; }
    static void decode(const MatmulArgs& args, int64_t row_tile, int64_t b, Bf16Panel& panel) {
        const int64_t left = args.n_in - 32 * b;
        const auto* w = static_cast<const uint16_t*>(args.weight) + 16 * row_tile * args.n_in + 32 * b;
        PairLanes rows[16];
        for (int r = 0; r < 16; ++r, w += args.n_in) {
            uint16_t values[32] = {};
            const bool exists = 16 * row_tile + r < args.n_out;
            if (exists && left >= 32) {
                load(w, rows[r]);
                continue;
            }
            for (int64_t k = 0; exists && k < left; ++k) values[k] = w[k];
            load(values, rows[r]);
        }
        transpose_step<Isa, 1>(rows);
        transpose_step<Isa, 2>(rows);
        transpose_step<Isa, 4>(rows);
        transpose_step<Isa, 8>(rows);
        for (int pair = 0; pair < 16; ++pair) __builtin_memcpy(panel.w[pair], &rows[pair], sizeof(PairLanes));
    }

  private:
    static void load(const uint16_t* w, PairLanes& pairs) {
        alignas(64) uint16_t values[32];
        if constexpr (is_f16) {
            Isa::round32_f16(w, values);
            w = values;
        }
        __builtin_memcpy(&pairs, w, sizeof pairs);
    }
};

/// Bf16Kernels::round_row.
template <class Isa>
bool round_row(const float* x, int64_t n, int64_t begin, int64_t end, Bf16Block* out, int group_partials) noexcept {
    auto most = Isa::splat8(0.0f);
    Bf16Order<Isa>{(n + 31) / 32, group_partials}.each_block(begin, end, [&](int64_t b, int64_t place) {
        const float* values = x + 32 * b;
        float padded[32];
        if (n - 32 * b < 32) {
            for (int64_t i = 0; i < 32; ++i) padded[i] = 32 * b + i < n ? values[i] : 0.0f;
            values = padded;
        }
        for (int i = 0; i < 32; i += 8) most = Isa::abs_bits_max(Isa::load8(values + i), most);
        Isa::round32(values, out[place * kGroupColumns].x);
    });
    return Isa::largest_abs(most) <= 3.402823466e38f;  // false for NaN
}

}  // namespace ggmlx
