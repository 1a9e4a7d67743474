#pragma once
// AVX-512 with instructions for bf16: conversions that round to nearest even, and the dot product of pairs. Both take
// subnormal values for zeros. Included by isa/avx512_bf16.cpp, and by amx_bf16.h.

#include "ggmlx/backend/cpu/simd/avx512.h"
#include "ggmlx/backend/cpu/simd/bf16_e2m1.h"

namespace ggmlx {

struct Avx512Bf16 : Avx512 {
    /// Byte j of every row, unsigned, as float.
    template <int j>
    static Rows rows_u8(Bytes a) {
        return _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(a, 8 * j), _mm512_set1_epi32(255)));
    }
    /// Writes for every row first's value and second's, side by side, as bf16.
    static void store_pairs(void* p, Rows first, Rows second) {
        const auto words = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));  // first's rows come first
        alignas(64) static constexpr uint16_t kAlternate[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                                21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                                11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
        _mm512_storeu_si512(p, _mm512_permutexvar_epi16(_mm512_load_si512(kAlternate), words));
    }
    /// Whether one of 16 bytes is larger than n.
    static bool any_above(const uint8_t (&e)[16], int n) {
        const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(e));
        return _mm_cmpgt_epu8_mask(codes, _mm_set1_epi8(static_cast<char>(n))) != 0;
    }
    /// For every row kLargestLoweredE8M0 - e, where a bf16 has its exponent, twice.
    static Ints e2m1_lowering(const uint8_t* e) {
        const __m512i steps =
            _mm512_slli_epi32(_mm512_sub_epi32(_mm512_set1_epi32(kLargestLoweredE8M0), ints_u8(e)), 7);
        return _mm512_or_si512(steps, _mm512_slli_epi32(steps, 16));
    }
    /// Writes for every row the E2M1 codes 2 half and 2 half + 1 of four as bf16, their exponents lowered.
    template <int half>
    static void store_e2m1_pairs(void* p, Bytes codes, Ints lowering) {
        const __m128i spread =  // the two bytes of a row to words
            half == 0 ? _mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1)
                      : _mm_setr_epi8(2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1);
        const __m512i words = _mm512_shuffle_epi8(codes, _mm512_broadcast_i32x4(spread));
        const __m512i table = _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(kRaisedE2M1)));
        const __m512i magnitudes = _mm512_subs_epu16(_mm512_permutexvar_epi16(words, table), lowering);
        const __m512i signs = _mm512_slli_epi16(words, 12), sign = _mm512_set1_epi16(static_cast<short>(0x8000));
        constexpr int kOrWithAnd = 0xf8;  // a | (b & c)
        _mm512_storeu_si512(p, _mm512_ternarylogic_epi32(magnitudes, signs, sign, kOrWithAnd));
    }
    /// sum + the two products of each row's pair with a pair of x.
    static Rows add_pairs(Rows sum, Bytes w, const uint16_t* x) {
        int32_t pair;
        __builtin_memcpy(&pair, x, sizeof pair);
        return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(w),
                                reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair)));
    }
    /// 32 values to bf16.
    static void round32(const float* x, uint16_t* out) {
        _mm512_storeu_si512(
            out, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + 16), _mm512_loadu_ps(x))));
    }
    static void round32_f16(const uint16_t* x, uint16_t* out) {
        const Rows low = rows_f16(x), high = rows_f16(x + 16);
        _mm512_storeu_si512(out, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
    }
};

}  // namespace ggmlx
