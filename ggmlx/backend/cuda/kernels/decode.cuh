#pragma once
// Weights of block types as int8 words for integer dot products, in registers. Layouts: quant/tiles.h.
//
// A K block of 32 values of one row becomes eight words of four int8; word g (0..3) of `low` meets word g of the
// activations' first half and word g of `high` word g of their second half (activations.cuh keeps both in the same
// order). For most types the halves are k = 0..15 and 16..31. MXFP4 takes its nibbles as selectors of a byte
// permutation, so its words hold k = 4g, 16+4g, 4g+1, 17+4g and the two after them; activations are stored in that
// order for it.

#include "ggmlx/backend/cuda/kernels/math.cuh"
#include "ggmlx/quant/tiles.h"

namespace ggmlx::cuda {

/// What turns the integer sums of a block into its share of the result, for one row.
struct RowScale {
    float scale = 0.0f;
    float minimum = 0.0f;   ///< types with one: what is subtracted from every value
    int low = 1, high = 1;  ///< Q6_K: the int8 scales of the halves
};

struct WordPair {
    int low, high;
};

/// s_a, and the sums of the activations' halves.
struct ActivationMeta {
    float scale;
    int16_t low, high;
};

template <class Tile>
inline constexpr bool kHasMinimum = Tile::kType == DType::Q4_1 || Tile::kType == DType::Q4_K;

/// p + the share of a block whose integer sum is `i`, rounded as reference.h says.
template <class Tile>
__device__ inline float add_scaled(float p, float i, const RowScale& w, const ActivationMeta& a) {
    p = __fmaf_rn(i, w.scale * a.scale, p);
    if constexpr (kHasMinimum<Tile>) p = __fmaf_rn(-static_cast<float>(a.low + a.high), w.minimum * a.scale, p);
    return p;
}

/// The same from the integer sums of the halves, as codes are stored: what they are short of the values is subtracted.
template <class Tile>
__device__ inline float add_block(float p, int low, int high, const RowScale& w, const ActivationMeta& a) {
    constexpr bool is_q6 = Tile::kType == DType::Q6_K, is_q4_0 = Tile::kType == DType::Q4_0;
    int i = low + high;
    if constexpr (is_q6) i = w.low * (low - 32 * a.low) + w.high * (high - 32 * a.high);
    if constexpr (is_q4_0) i -= 8 * (a.low + a.high);
    return add_scaled<Tile>(p, static_cast<float>(i), w, a);
}

template <class Tile>
inline constexpr bool kInterleaved = Tile::kType == DType::MXFP4;
/// K blocks of 32 values in a tile.
template <class Tile>
inline constexpr int kSubBlocks = Tile::kType == DType::Q4_K || Tile::kType == DType::Q6_K ? 8 : 1;

/// Four nibbles of the lower 16 bits of `codes` as twice their E2M1 values.
__device__ inline int e2m1_doubled(unsigned codes, unsigned signs) {
    const unsigned selectors = codes & 0x7777u;
    const unsigned positive = __byte_perm(0x03020100u, 0x0c080604u, selectors);
    const unsigned negative = __byte_perm(0xfdfeff00u, 0xf4f8fafcu, selectors);
    return static_cast<int>((positive & ~signs) | (negative & signs));
}
/// For each of two bytes of w its low and its high nibble's sign: 0xff where bit 3 is set. prmt's sign mode, which the
/// intrinsic would mask away.
template <unsigned kSelector>
__device__ inline unsigned nibble_signs(unsigned w, unsigned shifted) {
    unsigned signs;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(signs) : "r"(w), "r"(shifted), "n"(kSelector));
    return signs;
}
__device__ inline WordPair decode_e2m1(unsigned w) {
    const unsigned shifted = w << 4;
    return {e2m1_doubled(w, nibble_signs<0x9d8cu>(w, shifted)),
            e2m1_doubled(w >> 16, nibble_signs<0xbfaeu>(w, shifted))};
}
__device__ inline WordPair decode_nibbles(unsigned w) {
    return {static_cast<int>(w & 0x0f0f0f0fu), static_cast<int>((w >> 4) & 0x0f0f0f0fu)};
}

/// The values of one stored word of a type of 4-bit codes.
template <class Tile>
__device__ inline WordPair decode_word(unsigned w) {
    if constexpr (kInterleaved<Tile>) return decode_e2m1(w);
    return decode_nibbles(w);
}

/// The words of group g (0..3) of row r of sub-block `sub`, read one by one: what tensor-core kernels do.
__device__ inline WordPair read_words(const TileQ8_0& t, int, int g, int r) {
    return {*reinterpret_cast<const int*>(t.q[g][r]), *reinterpret_cast<const int*>(t.q[4 + g][r])};
}
__device__ inline WordPair read_words(const TileQ4_0& t, int, int g, int r) {
    return decode_word<TileQ4_0>(*reinterpret_cast<const unsigned*>(t.q[g][r]));
}
__device__ inline WordPair read_words(const TileQ4_1& t, int, int g, int r) {
    return decode_word<TileQ4_1>(*reinterpret_cast<const unsigned*>(t.q[g][r]));
}
__device__ inline WordPair read_words(const TileMXFP4& t, int, int g, int r) {
    return decode_word<TileMXFP4>(*reinterpret_cast<const unsigned*>(t.q[g][r]));
}
__device__ inline WordPair read_words(const TileQ4_K& t, int sub, int g, int r) {
    return decode_word<TileQ4_K>(*reinterpret_cast<const unsigned*>(t.q[sub][g][r]));
}
__device__ inline WordPair join_q6(unsigned w, unsigned bits, int g) {
    const int shift = 2 * (g & 1);
    return {static_cast<int>((w & 0x0f0f0f0fu) | (((bits >> shift) & 0x03030303u) << 4)),
            static_cast<int>(((w >> 4) & 0x0f0f0f0fu) | (((bits >> (4 + shift)) & 0x03030303u) << 4))};
}
__device__ inline WordPair read_words(const TileQ6_K& t, int sub, int g, int r) {
    return join_q6(*reinterpret_cast<const unsigned*>(t.lo[sub][g][r]),
                   *reinterpret_cast<const unsigned*>(t.hi[sub][g >> 1][r]), g);
}

__device__ inline RowScale read_scale(const TileQ8_0& t, int, int r) { return {f16_bits_to_float(t.d[r])}; }
__device__ inline RowScale read_scale(const TileQ4_0& t, int, int r) { return {f16_bits_to_float(t.d[r])}; }
__device__ inline RowScale read_scale(const TileQ4_1& t, int, int r) {
    return {f16_bits_to_float(t.d[r]), -f16_bits_to_float(t.m[r])};
}
__device__ inline RowScale read_scale(const TileMXFP4& t, int, int r) { return {half_e8m0_to_float(t.e[r])}; }
__device__ inline RowScale read_scale(const TileQ4_K& t, int sub, int r) {
    const int lo = t.lo[sub][r], hi = t.hi[sub >> 1][r] >> (4 * (sub & 1));
    return {f16_bits_to_float(t.d[r]) * static_cast<float>((lo & 15) | ((hi & 3) << 4)),
            f16_bits_to_float(t.dmin[r]) * static_cast<float>((lo >> 4) | (((hi >> 2) & 3) << 4))};
}
__device__ inline RowScale read_scale(const TileQ6_K& t, int sub, int r) {
    return {f16_bits_to_float(t.d[r]), 0.0f, t.sc[2 * sub][r], t.sc[2 * sub + 1][r]};
}

__device__ inline void spread(int4 v, int (&to)[4]) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }
__device__ inline int word_of(const int4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

/// Four rows (4q … 4q+3) of one sub-block, in 16-byte loads that pass the cache by: what products of few columns do.
template <class Tile>
struct FourRows {
    int words[4][4];  ///< [g][row]

    __device__ void load(const Tile& t, int sub, int q) {
        const auto* from = reinterpret_cast<const int4*>(reinterpret_cast<const std::byte*>(&t) + sub * 256);
        for (int g = 0; g < 4; ++g) spread(__ldcs(from + 4 * g + q), words[g]);
    }
    __device__ WordPair pair(int g, int row) const { return decode_word<Tile>(static_cast<unsigned>(words[g][row])); }
};

template <>
struct FourRows<TileQ8_0> {
    int words[8][4];

    __device__ void load(const TileQ8_0& t, int, int q) {
        const auto* from = reinterpret_cast<const int4*>(&t);
        for (int g = 0; g < 8; ++g) spread(__ldcs(from + 4 * g + q), words[g]);
    }
    __device__ WordPair pair(int g, int row) const { return {words[g][row], words[4 + g][row]}; }
};

template <>
struct FourRows<TileQ6_K> {
    int words[4][4], bits[2][4];

    __device__ void load(const TileQ6_K& t, int sub, int q) {
        const auto* lo = reinterpret_cast<const int4*>(t.lo[sub]);
        const auto* hi = reinterpret_cast<const int4*>(t.hi[sub]);
        for (int g = 0; g < 4; ++g) spread(__ldcs(lo + 4 * g + q), words[g]);
        for (int h = 0; h < 2; ++h) spread(__ldcs(hi + 4 * h + q), bits[h]);
    }
    __device__ WordPair pair(int g, int row) const {
        return join_q6(static_cast<unsigned>(words[g][row]), static_cast<unsigned>(bits[g >> 1][row]), g);
    }
};

/// Group g of four rows (4q … 4q+3) of one sub-block: what a lane of a split product loads.
template <class Tile>
struct GroupOfRows {
    int4 words;

    __device__ GroupOfRows(const Tile& t, int sub, int g, int q)
        : words(__ldg(reinterpret_cast<const int4*>(reinterpret_cast<const std::byte*>(&t) + sub * 256) + 4 * g + q)) {}
    __device__ WordPair pair(int row) const { return decode_word<Tile>(static_cast<unsigned>(word_of(words, row))); }
};

template <>
struct GroupOfRows<TileQ8_0> {
    int4 low, high;

    __device__ GroupOfRows(const TileQ8_0& t, int, int g, int q)
        : low(__ldg(reinterpret_cast<const int4*>(t.q[g]) + q)),
          high(__ldg(reinterpret_cast<const int4*>(t.q[4 + g]) + q)) {}
    __device__ WordPair pair(int row) const { return {word_of(low, row), word_of(high, row)}; }
};

template <>
struct GroupOfRows<TileQ6_K> {
    int4 words, bits;
    int g;

    __device__ GroupOfRows(const TileQ6_K& t, int sub, int group, int q)
        : words(__ldg(reinterpret_cast<const int4*>(t.lo[sub][group]) + q)),
          bits(__ldg(reinterpret_cast<const int4*>(t.hi[sub][group >> 1]) + q)),
          g(group) {}
    __device__ WordPair pair(int row) const {
        return join_q6(static_cast<unsigned>(word_of(words, row)), static_cast<unsigned>(word_of(bits, row)), g);
    }
};

}  // namespace ggmlx::cuda
