#pragma once
// AVX2 with vpdpbusd, which multiplies and adds four bytes per row in 32 bits. Included by isa/avx_vnni.cpp alone.

#include "ggmlx/backend/cpu/simd/avx2.h"

namespace ggmlx {

struct AvxVnni : Avx2 {
    /// Unsigned times signed: w + 128.
    static Bytes signed_bytes(Bytes w) { return _mm256_xor_si256(w, _mm256_set1_epi8(static_cast<char>(0x80))); }
    static Ints add_products(Ints sum, Bytes w, Bytes x) { return _mm256_dpbusd_avx_epi32(sum, w, x); }
    template <int offset>
    static Ints dot(const Bytes (&w)[8], const ActivationBlock& x) {
        static_assert(offset == 0 || offset == 8 || offset == 12 || offset == 128);
        __m256i sum = offset == 0 ? _mm256_setzero_si256() : _mm256_set1_epi32(x.minus_offset[kOffsetPlace<offset>]);
        for (int g = 0; g < 8; ++g) sum = _mm256_dpbusd_avx_epi32(sum, w[g], broadcast(x.q + 4 * g));
        return sum;
    }
    static Ints dot_signed(const Bytes (&w)[8], const ActivationBlock& x) { return dot<128>(w, x); }
    static Ints dot_q6(const Bytes (&w)[8], const ActivationBlock& x, const int8_t* scale0, const int8_t* scale1) {
        __m256i first = _mm256_set1_epi32(-32 * (x.pair[0][0] + x.pair[0][1]));
        __m256i second = _mm256_set1_epi32(-32 * (x.pair[1][0] + x.pair[1][1]));
        for (int g = 0; g < 4; ++g) {
            first = _mm256_dpbusd_avx_epi32(first, w[g], broadcast(x.q + 4 * g));
            second = _mm256_dpbusd_avx_epi32(second, w[g + 4], broadcast(x.q + 16 + 4 * g));
        }
        return _mm256_add_epi32(_mm256_mullo_epi32(first, ints_s8(scale0)),
                                _mm256_mullo_epi32(second, ints_s8(scale1)));
    }

  private:
    static __m256i ints_s8(const int8_t* p) {
        return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    }
};

}  // namespace ggmlx
