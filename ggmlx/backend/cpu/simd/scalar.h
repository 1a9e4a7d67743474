#pragma once
// The vector vocabulary in plain C++, for any processor. It also serves as the description of the vocabulary:
//   F8     eight floats: row-major data, norms, attention
//   Rows   one float for each of kRows rows of a weight tile (the tile's 16 rows are taken in 16 / kRows parts)
//   Ints   one int32 per row
//   Bytes  four bytes per row: values 4g .. 4g+3 of K group g
// Every function rounds as IEEE says, once; fma is fused. Nothing flushes subnormals.

#include <cmath>
#include <cstring>

#include "ggmlx/backend/cpu/kernels.h"
#include "ggmlx/core/float_types.h"

namespace ggmlx {

struct Scalar {
    static constexpr int kRows = 8;
    /// Columns whose sums fit the registers beside decoded weights.
    static constexpr int kColumnsInRegisters = 4;
    /// Columns whose products are made side by side.
    static constexpr int kColumnsAtOnce = 1;
    struct F8 {
        float v[8];
    };
    using Rows = F8;
    struct Ints {
        int32_t v[8];
    };
    struct Bytes {
        uint8_t v[8][4];
    };

    // --- floats ---
    static F8 splat8(float x) {
        F8 r;
        for (float& v : r.v) v = x;
        return r;
    }
    static F8 load8(const float* p) {
        F8 r;
        std::memcpy(r.v, p, sizeof r.v);
        return r;
    }
    static F8 load8(const uint16_t* f16) {
        return convert8(f16, [](uint16_t h) { return f16_to_f32(h); });
    }
    static F8 load8_bf16(const uint16_t* p) {
        return convert8(p, [](uint16_t h) { return bf16_to_f32(h); });
    }
    static F8 load8_f8(const uint8_t* p) {
        return convert8(p, [](uint8_t b) { return f8_e4m3_to_f32(b); });
    }
    static void store8(float* p, F8 a) { std::memcpy(p, a.v, sizeof a.v); }
    static F8 add(F8 a, F8 b) {
        return zip(a, b, [](float x, float y) { return x + y; });
    }
    static F8 sub(F8 a, F8 b) {
        return zip(a, b, [](float x, float y) { return x - y; });
    }
    static F8 mul(F8 a, F8 b) {
        return zip(a, b, [](float x, float y) { return x * y; });
    }
    static F8 div(F8 a, F8 b) {
        return zip(a, b, [](float x, float y) { return x / y; });
    }
    /// a > b ? a : b per lane: b where either is NaN.
    static F8 max(F8 a, F8 b) {
        return zip(a, b, [](float x, float y) { return x > y ? x : y; });
    }
    /// a < b ? a : b per lane: b where either is NaN.
    static F8 min(F8 a, F8 b) {
        return zip(a, b, [](float x, float y) { return x < y ? x : y; });
    }
    /// a * b + c, rounded once. (glibc picks the processor's instruction where there is one.)
    static F8 fma(F8 a, F8 b, F8 c) {
        for (int i = 0; i < 8; ++i) c.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
        return c;
    }
    static float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
    static F8 round_even(F8 a) {
        for (float& v : a.v) v = std::nearbyint(v);
        return a;
    }
    /// x · 2^n by adding n, an integer, to the exponent.
    static F8 raise_exponent(F8 x, F8 n) {
        return zip(x, n, [](float v, float by) {
            return std::bit_cast<float>(std::bit_cast<uint32_t>(v) + (static_cast<uint32_t>(to_int(by)) << 23));
        });
    }
    /// a > b ? yes : no per lane.
    static F8 where_greater(F8 a, F8 b, F8 yes, F8 no) {
        for (int i = 0; i < 8; ++i) no.v[i] = a.v[i] > b.v[i] ? yes.v[i] : no.v[i];
        return no;
    }
    /// a is NaN ? a : no per lane.
    static F8 keep_nan(F8 a, F8 no) {
        return zip(a, no, [](float x, float y) { return x != x ? x : y; });
    }
    static float largest(F8 a) {
        float most = a.v[0];
        for (float v : a.v) most = v > most ? v : most;
        return most;
    }
    /// The first n lanes of a, the others of b.
    static F8 first_lanes(int n, F8 a, F8 b) {
        for (int i = 0; i < n; ++i) b.v[i] = a.v[i];
        return b;
    }
    /// Lanes 0+4, 1+5, 2+6, 3+7, then +2, then +1.
    static float reduce(F8 a) {
        for (int width = 4; width > 0; width /= 2)
            for (int i = 0; i < width; ++i) a.v[i] += a.v[i + width];
        return a.v[0];
    }
    /// The largest bit pattern of |lane|, as an integer: orders like the absolute values, infinity and NaN on top.
    static F8 abs_bits_max(F8 a, F8 so_far) {
        for (int i = 0; i < 8; ++i)
            if (abs_bits(a.v[i]) > abs_bits(so_far.v[i])) so_far.v[i] = std::bit_cast<float>(abs_bits(a.v[i]));
        return so_far;
    }
    static float largest_abs(F8 a) {
        uint32_t most = 0;
        for (float v : a.v) most = abs_bits(v) > most ? abs_bits(v) : most;
        return std::bit_cast<float>(most);
    }
    /// Eight floats within ±127 to int8, to nearest even.
    static void store8_int8(int8_t* p, F8 a) {
        for (int i = 0; i < 8; ++i) p[i] = static_cast<int8_t>(std::nearbyint(a.v[i]));
    }
    /// pair[half][i]: the sum of the values k of that half with k / 2 mod 2 = i.
    static void sum_pairs(const int8_t (&q)[32], int16_t (&pair)[3][2]) {
        for (int half = 0; half < 2; ++half) {
            int sums[2] = {0, 0};
            for (int k = 0; k < 16; ++k) sums[(k >> 1) & 1] += q[16 * half + k];
            for (int i = 0; i < 2; ++i) pair[half][i] = static_cast<int16_t>(sums[i]);
        }
    }

    // --- rows of caches ---
    /// Eight int8 as floats.
    static F8 load8_int8(const int8_t* p) {
        return convert8(p, [](int8_t v) { return static_cast<float>(v); });
    }
    static F8 splat8_f16(uint16_t f16) { return splat8(f16_to_f32(f16)); }
    /// Stores round to nearest even; f8 saturates.
    static void store8_f16(uint16_t* p, F8 a) {
        for (int i = 0; i < 8; ++i) p[i] = f32_to_f16(a.v[i]);
    }
    static void store8_bf16(uint16_t* p, F8 a) {
        for (int i = 0; i < 8; ++i) p[i] = f32_to_bf16(a.v[i]);
    }
    static void store8_f8(uint8_t* p, F8 a) {
        for (int i = 0; i < 8; ++i) p[i] = f32_to_f8_e4m3(a.v[i]);
    }
    /// Lane i: the lanes of row i added as by reduce().
    static F8 reduce8(const float (&rows)[8][8]) {
        F8 sums;
        for (int i = 0; i < 8; ++i) sums.v[i] = reduce(load8(rows[i]));
        return sums;
    }

    // --- rows of a tile ---
    static Rows splat_rows(float x) { return splat8(x); }
    static Rows rows_f16(const uint16_t* p) { return load8(p); }
    static Rows rows_e8m0(const uint8_t* p) {
        return convert8(p, [](uint8_t e) { return e8m0_to_f32(e); });
    }
    static void store_rows(float* p, Rows a) { store8(p, a); }
    /// Eight floats, as often as a vector of rows holds them.
    static Rows repeat8(const float* p) { return load8(p); }
    static Rows to_rows(Ints a) {
        Rows r;
        for (int i = 0; i < 8; ++i) r.v[i] = static_cast<float>(a.v[i]);
        return r;
    }
    static Ints ints_u8(const uint8_t* p) {
        Ints r;
        for (int i = 0; i < 8; ++i) r.v[i] = p[i];
        return r;
    }
    /// ((a >> shift) & mask)
    static Ints bits(Ints a, int shift, int mask) {
        for (int32_t& v : a.v) v = (v >> shift) & mask;
        return a;
    }
    /// low | high << 4
    static Ints join4(Ints low, Ints high) {
        for (int i = 0; i < 8; ++i) low.v[i] |= high.v[i] << 4;
        return low;
    }

    static Rows load_rows(const float* p) { return load8(p); }
    static void store_bytes(void* p, Bytes a) { std::memcpy(p, a.v, sizeof a.v); }

    /// Asks for a cache line that will be read soon; any address will do.
    static void prefetch(const void* p) { __builtin_prefetch(p); }

    // --- bytes of a tile ---
    static Bytes load_bytes(const void* p) {
        Bytes r;
        std::memcpy(r.v, p, sizeof r.v);
        return r;
    }
    static Bytes low4(Bytes a) {
        return each(a, [](int b) { return b & 15; });
    }
    static Bytes high4(Bytes a) {
        return each(a, [](int b) { return b >> 4; });
    }
    /// E2M1 codes 0..15 to twice their value plus 12.
    static Bytes e2m1_plus12(Bytes codes) {
        constexpr uint8_t kTable[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
        return each(codes, [&](int b) { return kTable[b]; });
    }
    /// low | ((high >> shift) & 3) << 4
    static Bytes join_q6(Bytes low, Bytes high, int shift) {
        for (int r = 0; r < 8; ++r)
            for (int j = 0; j < 4; ++j)
                low.v[r][j] = static_cast<uint8_t>(low.v[r][j] | (((high.v[r][j] >> shift) & 3) << 4));
        return low;
    }
    /// Byte j of every row, an E4M3 code that is no NaN, as float.
    template <int j>
    static Rows rows_f8(Bytes a) {
        Rows r;
        for (int i = 0; i < 8; ++i) r.v[i] = f8_e4m3_to_f32(a.v[i][j]);
        return r;
    }
    static Bytes zero_bytes() { return {}; }
    /// Marks the bytes of `codes` that are NaNs of E4M3 in `marks`.
    static Bytes or_f8_nans(Bytes marks, Bytes codes) {
        for (int r = 0; r < 8; ++r)
            for (int j = 0; j < 4; ++j)
                if ((codes.v[r][j] & 0x7f) == 0x7f) marks.v[r][j] = 0xff;
        return marks;
    }
    /// NaN for rows with a mark.
    static Rows nan_where_any(Bytes marks, Rows a) {
        for (int r = 0; r < 8; ++r)
            for (uint8_t mark : marks.v[r])
                if (mark) a.v[r] = __builtin_nanf("");
        return a;
    }

    /// v, of which the compiler knows nothing.
    static Ints opaque(Ints v) {
        asm volatile("" : "+m"(v));
        return v;
    }
    /// sum + the four products w x of each row, of unsigned w below 128 and signed x.
    static Ints add_products(Ints sum, Bytes w, Bytes x) {
        for (int r = 0; r < 8; ++r)
            for (int j = 0; j < 4; ++j) sum.v[r] += w.v[r][j] * static_cast<int8_t>(x.v[r][j]);
        return sum;
    }

    // --- exact integer dot products of one row's 32 weights (w[g]: values 4g .. 4g+3) with 32 activations ---
    /// Σ (w - offset) q for unsigned w; |w - offset| <= 15.
    template <int offset>
    static Ints dot(const Bytes (&w)[8], const ActivationBlock& x) {
        Ints sum = dot_groups<uint8_t>(w, x.q, 0, 8);
        for (int32_t& v : sum.v) v -= offset * static_cast<int32_t>(x.sum);
        return sum;
    }
    /// What a panel keeps of weights + offset.
    template <int offset>
    static Bytes panel_bytes(Bytes w) {
        return w;
    }
    /// Signed weights as dot_signed() reads them.
    static Bytes signed_bytes(Bytes w) { return w; }
    /// Σ w q for signed w.
    static Ints dot_signed(const Bytes (&w)[8], const ActivationBlock& x) { return dot_groups<int8_t>(w, x.q, 0, 8); }
    /// scale0 Σ (w - 32) q over the first 16 values + scale1 Σ over the others, for unsigned w < 64.
    static Ints dot_q6(const Bytes (&w)[8], const ActivationBlock& x, const int8_t* scale0, const int8_t* scale1) {
        const Ints first = dot_groups<uint8_t>(w, x.q, 0, 4), second = dot_groups<uint8_t>(w, x.q, 4, 8);
        Ints r;
        for (int i = 0; i < 8; ++i)
            r.v[i] = scale0[i] * (first.v[i] - 32 * (x.pair[0][0] + x.pair[0][1])) +
                     scale1[i] * (second.v[i] - 32 * (x.pair[1][0] + x.pair[1][1]));
        return r;
    }

  private:
    /// As the vector instruction: a NaN becomes INT_MIN.
    static int32_t to_int(float x) { return x == x ? static_cast<int32_t>(x) : INT32_MIN; }
    static uint32_t abs_bits(float x) { return std::bit_cast<uint32_t>(x) & 0x7fffffffu; }
    template <class F>
    static F8 zip(F8 a, F8 b, F f) {
        for (int i = 0; i < 8; ++i) a.v[i] = f(a.v[i], b.v[i]);
        return a;
    }
    template <class T, class F>
    static F8 convert8(const T* p, F f) {
        F8 r;
        for (int i = 0; i < 8; ++i) r.v[i] = f(p[i]);
        return r;
    }
    template <class F>
    static Bytes each(Bytes a, F f) {
        for (auto& row : a.v)
            for (uint8_t& b : row) b = static_cast<uint8_t>(f(b));
        return a;
    }
    template <class Weight>
    static Ints dot_groups(const Bytes (&w)[8], const int8_t* q, int begin, int end) {
        Ints sum{};
        for (int g = begin; g < end; ++g)
            for (int r = 0; r < 8; ++r)
                for (int j = 0; j < 4; ++j) sum.v[r] += static_cast<Weight>(w[g].v[r][j]) * q[4 * g + j];
        return sum;
    }
};

}  // namespace ggmlx
