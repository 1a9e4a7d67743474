#pragma once
// AVX-512 with instructions for bf16: conversions that round to nearest even, and the dot product of pairs. Both take
// subnormal values for zeros. Included by isa/avx512_bf16.cpp, and by amx_bf16.h.

#include "ggmlx/backend/cpu/simd/avx512.h"

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
