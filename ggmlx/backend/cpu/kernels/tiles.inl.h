#pragma once
// What a matmul needs to know of each block type with an integer dot product: 32 weights of the rows of one part of a
// tile as bytes, their exact product with an activation block, and the float scale (and minimum) of each row.
// Bit layouts are those of quant/tiles.h. `sub` is the 32-value block within the tile, `row` the part's first row.

#include "ggmlx/backend/cpu/kernels.h"
#include "ggmlx/quant/tiles.h"

namespace ggmlx {

/// Bytes w[g] = values 4g .. 4g+3 from nibbles.
template <class Isa>
void load_nibbles(const uint8_t (&q)[4][16][4], int row, typename Isa::Bytes (&w)[8]) {
    for (int g = 0; g < 4; ++g) {
        const auto packed = Isa::load_bytes(q[g][row]);
        w[g] = Isa::low4(packed);
        w[g + 4] = Isa::high4(packed);
    }
}

/// load() gives weights + kOffset as bytes. kDotsOffset: the same for an ISA with dots(); -1 if a block is more than
/// one dot product.
template <class Isa, class Tile>
struct TileMath;

template <class Isa>
struct TileMath<Isa, TileQ4_0> {
    using Bytes = typename Isa::Bytes;
    static constexpr int kOffset = 8;
    static constexpr int kDotsOffset = kOffset;
    static constexpr int kSubBlocks = 1;
    static constexpr bool kHasMin = false;
    static void load(const TileQ4_0& t, int, int row, Bytes (&w)[8]) { load_nibbles<Isa>(t.q, row, w); }
    static auto dot(const TileQ4_0&, int, int, const Bytes (&w)[8], const ActivationBlock& x) {
        return Isa::template dot<kOffset>(w, x);
    }
    static auto scale(const TileQ4_0& t, int, int row) { return Isa::rows_f16(t.d + row); }
};

template <class Isa>
struct TileMath<Isa, TileQ4_1> {
    using Bytes = typename Isa::Bytes;
    static constexpr int kOffset = 0;
    static constexpr int kDotsOffset = kOffset;
    static constexpr int kSubBlocks = 1;
    static constexpr bool kHasMin = true;
    static void load(const TileQ4_1& t, int, int row, Bytes (&w)[8]) { load_nibbles<Isa>(t.q, row, w); }
    static auto dot(const TileQ4_1&, int, int, const Bytes (&w)[8], const ActivationBlock& x) {
        return Isa::template dot<kOffset>(w, x);
    }
    static auto scale(const TileQ4_1& t, int, int row) { return Isa::rows_f16(t.d + row); }
    /// What is added per unit of weight: minus the minimum of blocks.h.
    static auto addend(const TileQ4_1& t, int, int row) { return Isa::rows_f16(t.m + row); }
};

template <class Isa>
struct TileMath<Isa, TileQ4_K> {
    using Bytes = typename Isa::Bytes;
    static constexpr int kOffset = 0;
    static constexpr int kDotsOffset = kOffset;
    static constexpr int kSubBlocks = 8;
    static constexpr bool kHasMin = true;
    static void load(const TileQ4_K& t, int sub, int row, Bytes (&w)[8]) { load_nibbles<Isa>(t.q[sub], row, w); }
    static auto dot(const TileQ4_K&, int, int, const Bytes (&w)[8], const ActivationBlock& x) {
        return Isa::template dot<kOffset>(w, x);
    }
    static auto scale(const TileQ4_K& t, int sub, int row) {
        return Isa::mul(Isa::rows_f16(t.d + row), six_bits(t, sub, row, 0));
    }
    static auto addend(const TileQ4_K& t, int sub, int row) {
        const auto minimum = Isa::mul(Isa::rows_f16(t.dmin + row), six_bits(t, sub, row, 1));
        return Isa::mul(minimum, Isa::splat_rows(-1.0f));
    }

  private:
    /// The 6-bit scale (which = 0) or minimum (which = 1).
    static auto six_bits(const TileQ4_K& t, int sub, int row, int which) {
        const auto low = Isa::bits(Isa::ints_u8(t.lo[sub] + row), 4 * which, 15);
        const auto high = Isa::bits(Isa::ints_u8(t.hi[sub >> 1] + row), 4 * (sub & 1) + 2 * which, 3);
        return Isa::to_rows(Isa::join4(low, high));
    }
};

template <class Isa>
struct TileMath<Isa, TileQ6_K> {
    using Bytes = typename Isa::Bytes;
    static constexpr int kOffset = 32;
    static constexpr int kDotsOffset = -1;
    static constexpr int kSubBlocks = 8;
    static constexpr bool kHasMin = false;
    static void load(const TileQ6_K& t, int sub, int row, Bytes (&w)[8]) {
        load_nibbles<Isa>(t.lo[sub], row, w);
        for (int h = 0; h < 2; ++h) {
            const Bytes high = Isa::load_bytes(t.hi[sub][h][row]);
            w[2 * h] = Isa::join_q6(w[2 * h], high, 0);
            w[2 * h + 1] = Isa::join_q6(w[2 * h + 1], high, 2);
            w[4 + 2 * h] = Isa::join_q6(w[4 + 2 * h], high, 4);
            w[5 + 2 * h] = Isa::join_q6(w[5 + 2 * h], high, 6);
        }
    }
    static auto dot(const TileQ6_K& t, int sub, int row, const Bytes (&w)[8], const ActivationBlock& x) {
        return Isa::dot_q6(w, x, t.sc[2 * sub] + row, t.sc[2 * sub + 1] + row);
    }
    static auto scale(const TileQ6_K& t, int, int row) { return Isa::rows_f16(t.d + row); }
};

template <class Isa>
struct TileMath<Isa, TileQ8_0> {
    using Bytes = typename Isa::Bytes;
    static constexpr int kOffset = 0;  // beside what signed_bytes() does
    static constexpr int kDotsOffset = 128;
    static constexpr int kSubBlocks = 1;
    static constexpr bool kHasMin = false;
    static void load(const TileQ8_0& t, int, int row, Bytes (&w)[8]) {
        for (int g = 0; g < 8; ++g) w[g] = Isa::signed_bytes(Isa::load_bytes(t.q[g][row]));
    }
    static auto dot(const TileQ8_0&, int, int, const Bytes (&w)[8], const ActivationBlock& x) {
        return Isa::dot_signed(w, x);
    }
    static auto scale(const TileQ8_0& t, int, int row) { return Isa::rows_f16(t.d + row); }
};

template <class Isa>
struct TileMath<Isa, TileMXFP4> {
    using Bytes = typename Isa::Bytes;
    static constexpr int kOffset = 12;
    static constexpr int kDotsOffset = kOffset;
    static constexpr int kSubBlocks = 1;
    static constexpr bool kHasMin = false;
    static void load(const TileMXFP4& t, int, int row, Bytes (&w)[8]) {
        load_nibbles<Isa>(t.q, row, w);
        for (Bytes& bytes : w) bytes = Isa::e2m1_plus12(bytes);
    }
    static auto dot(const TileMXFP4&, int, int, const Bytes (&w)[8], const ActivationBlock& x) {
        return Isa::template dot<kOffset>(w, x);
    }
    /// The dot product is of doubled values: half of the E8M0 scale.
    static auto scale(const TileMXFP4& t, int, int row) {
        return Isa::mul(Isa::rows_e8m0(t.e + row), Isa::splat_rows(0.5f));
    }
};

/// products[c]: of the weights w with activation block x[c]; several at once where the ISA gains by it.
template <class Isa, class Tile, int M>
void multiply_block(const Tile& tile, int sub, int row, const typename Isa::Bytes (&w)[8], const ActivationBlock* x,
                    typename Isa::Ints (&products)[M]) {
    using Math = TileMath<Isa, Tile>;
    if constexpr (Isa::kColumnsAtOnce > 1 && Math::kDotsOffset >= 0)
        Isa::template dots<Math::kDotsOffset>(w, x, products);
    else
        for (int c = 0; c < M; ++c) products[c] = Math::dot(tile, sub, row, w, x[c]);
}

/// Calls f with the tile of every type that has an integer dot product, as a TileOf.
template <class T>
struct TileOf {
    using Tile = T;
};
template <class F>
constexpr void for_each_tile(F f) {
    f(TileOf<TileQ8_0>{});
    f(TileOf<TileQ4_0>{});
    f(TileOf<TileQ4_1>{});
    f(TileOf<TileQ4_K>{});
    f(TileOf<TileQ6_K>{});
    f(TileOf<TileMXFP4>{});
}

}  // namespace ggmlx
