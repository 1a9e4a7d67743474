#pragma once
// The vector vocabulary (described in scalar.h) with AVX-512 F, BW, DQ, VL and VNNI: a tile's 16 rows are one vector.
// Included by isa/avx512.cpp, and by amx.h.

#if !defined(__clang__)
// GCC 12 calls the undefined vectors inside its own intrinsics uninitialized (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include "ggmlx/backend/cpu/simd/avx2.h"

namespace ggmlx {

struct Avx512 : Floats8<Avx512> {
    static constexpr int kColumnsInRegisters = 8;
    static constexpr int kColumnsAtOnce = 4;
    static constexpr int kRows = 16;
    using Rows = __m512;
    using Ints = __m512i;
    using Bytes = __m512i;

    using Floats8<Avx512>::add;
    using Floats8<Avx512>::mul;
    using Floats8<Avx512>::fma;

    static Rows add(Rows a, Rows b) { return _mm512_add_ps(a, b); }
    static Rows mul(Rows a, Rows b) { return _mm512_mul_ps(a, b); }
    static Rows fma(Rows a, Rows b, Rows c) { return _mm512_fmadd_ps(a, b, c); }
    static Rows splat_rows(float x) { return _mm512_set1_ps(x); }
    static Rows rows_f16(const uint16_t* p) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static Rows rows_e8m0(const uint8_t* p) {
        const __m512i e = ints_u8(p);
        const __m512i scale = _mm512_max_epi32(_mm512_slli_epi32(e, 23), _mm512_set1_epi32(0x00400000));
        const __mmask16 nan = _mm512_cmpeq_epi32_mask(e, _mm512_set1_epi32(255));
        return _mm512_castsi512_ps(_mm512_mask_mov_epi32(scale, nan, _mm512_set1_epi32(0x7fc00000)));
    }
    static Rows load_rows(const float* p) { return _mm512_loadu_ps(p); }
    static void store_rows(float* p, Rows a) { _mm512_storeu_ps(p, a); }
    static Rows repeat8(const float* p) { return _mm512_broadcast_f32x8(_mm256_loadu_ps(p)); }
    static Rows to_rows(Ints a) { return _mm512_cvtepi32_ps(a); }
    static Ints ints_u8(const uint8_t* p) {
        return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static Ints bits(Ints a, int shift, int mask) {
        return _mm512_and_si512(_mm512_srli_epi32(a, static_cast<unsigned>(shift)), _mm512_set1_epi32(mask));
    }
    static Ints join4(Ints low, Ints high) { return _mm512_or_si512(low, _mm512_slli_epi32(high, 4)); }

    static Bytes load_bytes(const void* p) { return _mm512_loadu_si512(p); }
    template <int offset>
    static Bytes panel_bytes(Bytes w) {
        return w;
    }
    static void store_bytes(void* p, Bytes a) { _mm512_storeu_si512(p, a); }
    /// vpdpbusd multiplies unsigned with signed: w + 128.
    static Bytes signed_bytes(Bytes w) { return _mm512_xor_si512(w, _mm512_set1_epi8(static_cast<char>(0x80))); }
    static Bytes low4(Bytes a) { return _mm512_and_si512(a, _mm512_set1_epi8(15)); }
    static Bytes high4(Bytes a) { return low4(_mm512_srli_epi16(a, 4)); }
    static Bytes e2m1_plus12(Bytes codes) {
        const __m128i table = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
        return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), codes);
    }
    static Bytes join_q6(Bytes low, Bytes high, int shift) {
        const __m512i top = shift < 4 ? _mm512_slli_epi16(high, static_cast<unsigned>(4 - shift))
                                      : _mm512_srli_epi16(high, static_cast<unsigned>(shift - 4));
        return _mm512_or_si512(low, _mm512_and_si512(top, _mm512_set1_epi8(0x30)));
    }
    /// As Floats8::from_e4m3.
    template <int j>
    static Rows rows_f8(Bytes a) {
        const __m512i mask = _mm512_set1_epi32(static_cast<int>(0x87f00000u));
        const __m512i small = _mm512_and_si512(_mm512_srai_epi32(_mm512_slli_epi32(a, 24 - 8 * j), 4), mask);
        return _mm512_mul_ps(_mm512_castsi512_ps(small), _mm512_set1_ps(0x1p120f));
    }
    static Bytes zero_bytes() { return _mm512_setzero_si512(); }
    static Bytes or_f8_nans(Bytes marks, Bytes codes) {
        const __m512i most = _mm512_set1_epi8(0x7f);
        return _mm512_mask_mov_epi8(marks, _mm512_cmpeq_epi8_mask(_mm512_and_si512(codes, most), most), most);
    }
    static Rows nan_where_any(Bytes marks, Rows a) {
        const __mmask16 any = _mm512_test_epi32_mask(marks, marks);
        return _mm512_mask_mov_ps(a, any, _mm512_set1_ps(__builtin_nanf("")));
    }

    static Ints opaque(Ints v) {
        asm volatile("" : "+v"(v));
        return v;
    }
    static Ints add_products(Ints sum, Bytes w, Bytes x) { return _mm512_dpbusd_epi32(sum, w, x); }
    template <int offset>
    static Ints dot(const Bytes (&w)[8], const ActivationBlock& x) {
        static_assert(offset == 0 || offset == 8 || offset == 12 || offset == 128);
        __m512i sum = offset == 0 ? _mm512_setzero_si512() : _mm512_set1_epi32(x.minus_offset[kOffsetPlace<offset>]);
        for (int g = 0; g < 8; ++g) sum = _mm512_dpbusd_epi32(sum, w[g], broadcast(x.q + 4 * g));
        return sum;
    }
    static Ints dot_signed(const Bytes (&w)[8], const ActivationBlock& x) { return dot<128>(w, x); }
    /// dot() with M blocks. vpdpbusd takes five cycles and two start in each: two chains per block, those of all blocks
    /// side by side, keep both ports busy.
    template <int offset, int M>
    static void dots(const Bytes (&w)[8], const ActivationBlock* x, Ints (&products)[M]) {
        Ints second[M];
        for (int c = 0; c < M; ++c) {
            products[c] =
                offset == 0 ? _mm512_setzero_si512() : _mm512_set1_epi32(x[c].minus_offset[kOffsetPlace<offset>]);
            second[c] = _mm512_setzero_si512();
        }
        for (int g = 0; g < 4; ++g)
            for (int c = 0; c < M; ++c) {
                products[c] = _mm512_dpbusd_epi32(products[c], w[g], broadcast(x[c].q + 4 * g));
                second[c] = _mm512_dpbusd_epi32(second[c], w[g + 4], broadcast(x[c].q + 16 + 4 * g));
            }
        for (int c = 0; c < M; ++c) products[c] = _mm512_add_epi32(products[c], second[c]);
    }
    static Ints dot_q6(const Bytes (&w)[8], const ActivationBlock& x, const int8_t* scale0, const int8_t* scale1) {
        __m512i first = _mm512_set1_epi32(-32 * (x.pair[0][0] + x.pair[0][1]));
        __m512i second = _mm512_set1_epi32(-32 * (x.pair[1][0] + x.pair[1][1]));
        for (int g = 0; g < 4; ++g) {
            first = _mm512_dpbusd_epi32(first, w[g], broadcast(x.q + 4 * g));
            second = _mm512_dpbusd_epi32(second, w[g + 4], broadcast(x.q + 16 + 4 * g));
        }
        return _mm512_add_epi32(_mm512_mullo_epi32(first, ints_s8(scale0)),
                                _mm512_mullo_epi32(second, ints_s8(scale1)));
    }

    static Ints ints_s8(const int8_t* p) {
        return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }

  private:
    static __m512i broadcast(const int8_t* four_bytes) {
        int32_t word;
        __builtin_memcpy(&word, four_bytes, 4);
        return _mm512_set1_epi32(word);
    }
};

}  // namespace ggmlx
