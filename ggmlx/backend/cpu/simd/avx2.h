#pragma once
// The vector vocabulary (described in scalar.h) with AVX2, FMA and F16C. Included by isa/avx2.cpp, by avx_vnni.h, and
// by avx512.h for the eight-lane part.

#include <immintrin.h>

#include "ggmlx/backend/cpu/kernels.h"

namespace ggmlx {

/// The eight-lane floats, shared with Avx512. `Isa` makes them distinct functions for each ISA, so that one compiled
/// with wider flags is never used by the other.
template <class Isa>
struct Floats8 {
    using F8 = __m256;

    static void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

    static F8 splat8(float x) { return _mm256_set1_ps(x); }
    static F8 load8(const float* p) { return _mm256_loadu_ps(p); }
    static F8 load8(const uint16_t* f16) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(f16)));
    }
    static F8 load8_bf16(const uint16_t* p) {
        const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
    }
    static F8 load8_f8(const uint8_t* p) {
        const __m256i codes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
        const __m256i top = _mm256_slli_epi32(codes, 24), nan_magnitude = _mm256_set1_epi32(0x7f000000);
        const __m256i is_nan = _mm256_cmpeq_epi32(_mm256_and_si256(top, nan_magnitude), nan_magnitude);
        const __m256 nan = _mm256_or_ps(_mm256_castsi256_ps(top), _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)));
        return _mm256_blendv_ps(from_e4m3(top), nan, _mm256_castsi256_ps(is_nan));
    }
    static void store8(float* p, F8 a) { _mm256_storeu_ps(p, a); }
    static F8 add(F8 a, F8 b) { return _mm256_add_ps(a, b); }
    static F8 sub(F8 a, F8 b) { return _mm256_sub_ps(a, b); }
    static F8 mul(F8 a, F8 b) { return _mm256_mul_ps(a, b); }
    static F8 div(F8 a, F8 b) { return _mm256_div_ps(a, b); }
    static F8 max(F8 a, F8 b) { return _mm256_max_ps(a, b); }
    static F8 min(F8 a, F8 b) { return _mm256_min_ps(a, b); }
    static F8 fma(F8 a, F8 b, F8 c) { return _mm256_fmadd_ps(a, b, c); }
    static float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
    static F8 round_even(F8 a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
    static F8 raise_exponent(F8 x, F8 n) {
        return _mm256_castsi256_ps(
            _mm256_add_epi32(_mm256_castps_si256(x), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)));
    }
    static F8 where_greater(F8 a, F8 b, F8 yes, F8 no) {
        return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
    }
    static F8 keep_nan(F8 a, F8 no) { return _mm256_blendv_ps(no, a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q)); }
    static float largest(F8 a) {
        __m128 r = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        r = _mm_max_ps(r, _mm_movehl_ps(r, r));
        return _mm_cvtss_f32(_mm_max_ss(r, _mm_shuffle_ps(r, r, 1)));
    }
    static F8 first_lanes(int n, F8 a, F8 b) {
        const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane)));
    }
    static float reduce(F8 a) {
        __m128 r = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        r = _mm_add_ps(r, _mm_movehl_ps(r, r));
        return _mm_cvtss_f32(_mm_add_ss(r, _mm_shuffle_ps(r, r, 1)));
    }
    static F8 abs_bits_max(F8 a, F8 so_far) {
        const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(0x7fffffff));
        return _mm256_castsi256_ps(_mm256_max_epi32(magnitude, _mm256_castps_si256(so_far)));
    }
    static float largest_abs(F8 a) {
        const __m256i bits = _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(0x7fffffff));
        __m128i r = _mm_max_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
        r = _mm_max_epi32(r, _mm_shuffle_epi32(r, 0x4e));
        r = _mm_max_epi32(r, _mm_shuffle_epi32(r, 0xb1));
        return _mm_cvtss_f32(_mm_castsi128_ps(r));
    }
    static void store8_int8(int8_t* p, F8 a) {
        const __m256i ints = _mm256_cvtps_epi32(a);
        const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(ints), _mm256_extracti128_si256(ints, 1));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
    }
    /// vpmaddubsw with ones adds neighbours; then lanes of the same parity are added within each half.
    static void sum_pairs(const int8_t (&q)[32], int16_t (&pair)[3][2]) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q));
        __m256i sums = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
        sums = _mm256_add_epi16(sums, _mm256_shuffle_epi32(sums, 0x4e));
        sums = _mm256_add_epi16(sums, _mm256_shuffle_epi32(sums, 0xb1));
        const int first = _mm256_extract_epi32(sums, 0), second = _mm256_extract_epi32(sums, 4);
        __builtin_memcpy(pair[0], &first, sizeof first);
        __builtin_memcpy(pair[1], &second, sizeof second);
    }

    // --- rows of caches ---
    static F8 load8_int8(const int8_t* p) {
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
    }
    static F8 splat8_f16(uint16_t f16) { return _mm256_cvtph_ps(_mm_set1_epi16(static_cast<short>(f16))); }
    static void store8_f16(uint16_t* p, F8 a) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
    }
    static void store8_bf16(uint16_t* p, F8 a) {
        const __m256i bits = _mm256_castps_si256(a), top = _mm256_srli_epi32(bits, 16);
        const __m256i odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
        const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
        const __m256i quiet = _mm256_or_si256(top, _mm256_set1_epi32(0x40));
        const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
        const __m256i words = _mm256_blendv_epi8(_mm256_srli_epi32(up, 16), quiet, is_nan);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                         _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
    }
    static void store8_f8(uint8_t* p, F8 a) {
        const __m256i bits = _mm256_castps_si256(a), size = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(size, 20), _mm256_set1_epi32(1));
        const __m256i up = _mm256_add_epi32(size, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7ffff - (120 << 23))));
        // Below 2^-6 codes count multiples of 2^-9.
        const __m256i small = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_castsi256_ps(size), _mm256_set1_ps(0x1p9f)));
        const auto above = [&](int limit) { return _mm256_cmpgt_epi32(size, _mm256_set1_epi32(limit)); };
        __m256i code = _mm256_blendv_epi8(small, _mm256_srli_epi32(up, 20), above(0x3c800000 - 1));
        code = _mm256_blendv_epi8(code, _mm256_set1_epi32(0x7e), above(0x43e00000 - 1));
        code = _mm256_blendv_epi8(code, _mm256_set1_epi32(0x7f), above(0x7f800000));
        code = _mm256_or_si256(code, _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80)));
        const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(code), _mm256_extracti128_si256(code, 1));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
    }
    static F8 reduce8(const float (&rows)[8][8]) {
        __m256 halves[4];  // row i and row i + 4, lanes 0 + 4, 1 + 5, 2 + 6, 3 + 7 of each
        for (int i = 0; i < 4; ++i) {
            const __m256 a = _mm256_loadu_ps(rows[i]), b = _mm256_loadu_ps(rows[i + 4]);
            halves[i] = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
        }
        const __m256 even = add_pairs(halves[0], halves[1]), odd = add_pairs(halves[2], halves[3]);
        return _mm256_add_ps(_mm256_shuffle_ps(even, odd, 0x88), _mm256_shuffle_ps(even, odd, 0xdd));
    }

  protected:
    /// Per half: {a0 + a2, a1 + a3, b0 + b2, b1 + b3}.
    static F8 add_pairs(F8 a, F8 b) {
        return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
    }
    /// E4M3 codes, no NaNs, in the top byte of each lane. Moved down by four bits under its sign a code has the
    /// exponent and mantissa of a float, short of the difference of the exponents' biases, 120; subnormals come out
    /// right too.
    static F8 from_e4m3(__m256i top) {
        const __m256i small =
            _mm256_and_si256(_mm256_srai_epi32(top, 4), _mm256_set1_epi32(static_cast<int>(0x87f00000u)));
        return _mm256_mul_ps(_mm256_castsi256_ps(small), _mm256_set1_ps(0x1p120f));
    }
};

struct Avx2 : Floats8<Avx2> {
    static constexpr int kColumnsInRegisters = 4;
    static constexpr int kColumnsAtOnce = 1;
    static constexpr int kRows = 8;
    using Rows = __m256;
    using Ints = __m256i;
    using Bytes = __m256i;

    static Rows splat_rows(float x) { return splat8(x); }
    static Rows rows_f16(const uint16_t* p) { return load8(p); }
    static Rows rows_e8m0(const uint8_t* p) {
        const __m256i e = ints_u8(p);
        const __m256i scale = _mm256_max_epi32(_mm256_slli_epi32(e, 23), _mm256_set1_epi32(0x00400000));
        const __m256i nan = _mm256_cmpeq_epi32(e, _mm256_set1_epi32(255));
        return _mm256_castsi256_ps(_mm256_or_si256(scale, _mm256_and_si256(nan, _mm256_set1_epi32(0x7fc00000))));
    }
    static Rows load_rows(const float* p) { return load8(p); }
    static void store_rows(float* p, Rows a) { store8(p, a); }
    static Rows repeat8(const float* p) {
        Rows a = load8(p);
        asm("" : "+x"(a));  // used several times: read once, where GCC would read it again for each use
        return a;
    }
    static Rows to_rows(Ints a) { return _mm256_cvtepi32_ps(a); }
    static Ints ints_u8(const uint8_t* p) {
        return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    }
    static Ints bits(Ints a, int shift, int mask) {
        return _mm256_and_si256(_mm256_srli_epi32(a, shift), _mm256_set1_epi32(mask));
    }
    static Ints join4(Ints low, Ints high) { return _mm256_or_si256(low, _mm256_slli_epi32(high, 4)); }

    static Bytes load_bytes(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
    template <int offset>
    static Bytes panel_bytes(Bytes w) {
        return w;
    }
    static void store_bytes(void* p, Bytes a) { _mm256_storeu_si256(static_cast<__m256i*>(p), a); }
    static Bytes signed_bytes(Bytes w) { return w; }
    static Bytes low4(Bytes a) { return _mm256_and_si256(a, _mm256_set1_epi8(15)); }
    static Bytes high4(Bytes a) { return low4(_mm256_srli_epi16(a, 4)); }
    static Bytes e2m1_plus12(Bytes codes) {
        const __m128i table = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), codes);
    }
    static Bytes join_q6(Bytes low, Bytes high, int shift) {
        const __m256i top = shift < 4 ? _mm256_slli_epi16(high, 4 - shift) : _mm256_srli_epi16(high, shift - 4);
        return _mm256_or_si256(low, _mm256_and_si256(top, _mm256_set1_epi8(0x30)));
    }
    template <int j>
    static Rows rows_f8(Bytes a) {
        return from_e4m3(_mm256_slli_epi32(a, 24 - 8 * j));
    }
    static Bytes zero_bytes() { return _mm256_setzero_si256(); }
    static Bytes or_f8_nans(Bytes marks, Bytes codes) {
        const __m256i most = _mm256_set1_epi8(0x7f);
        return _mm256_or_si256(marks, _mm256_cmpeq_epi8(_mm256_and_si256(codes, most), most));
    }
    static Rows nan_where_any(Bytes marks, Rows a) {
        const __m256 none = _mm256_castsi256_ps(_mm256_cmpeq_epi32(marks, _mm256_setzero_si256()));
        return _mm256_blendv_ps(_mm256_set1_ps(__builtin_nanf("")), a, none);
    }

    static Ints opaque(Ints v) {
        asm volatile("" : "+x"(v));
        return v;
    }
    static Ints add_products(Ints sum, Bytes w, Bytes x) {
        return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
    }
    /// The sums of products are kept in 16 bits, two per row: one vpmaddubsw adds two products (at most 2·63·127, so it
    /// never saturates), and with the offset taken off first the sum of all stays below 2^15 at its end (15·127·16),
    /// so that wrapping in between is harmless.
    template <int offset>
    static Ints dot(const Bytes (&w)[8], const ActivationBlock& x) {
        __m256i sum = minus_offset<offset>(broadcast(x.pair[2]));
        for (int g = 0; g < 8; ++g) sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w[g], broadcast(x.q + 4 * g)));
        return _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
    }
    /// |w| · (q with the sign of w): at most 2·128·127 per vpmaddubsw, then widened at once.
    static Ints dot_signed(const Bytes (&w)[8], const ActivationBlock& x) {
        __m256i sum = _mm256_setzero_si256();
        for (int g = 0; g < 8; ++g) {
            const __m256i q = _mm256_sign_epi8(broadcast(x.q + 4 * g), w[g]);
            const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w[g]), q);
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        }
        return sum;
    }
    /// As dot(), over halves: at most 32·127·8 = 32512 in 16 bits; the int8 scale is the factor of the last addition.
    static Ints dot_q6(const Bytes (&w)[8], const ActivationBlock& x, const int8_t* scale0, const int8_t* scale1) {
        __m256i first = minus_offset<32>(broadcast(x.pair[0])), second = minus_offset<32>(broadcast(x.pair[1]));
        for (int g = 0; g < 4; ++g) {
            first = _mm256_add_epi16(first, _mm256_maddubs_epi16(w[g], broadcast(x.q + 4 * g)));
            second = _mm256_add_epi16(second, _mm256_maddubs_epi16(w[g + 4], broadcast(x.q + 16 + 4 * g)));
        }
        return _mm256_add_epi32(_mm256_madd_epi16(first, int8_pairs(scale0)),
                                _mm256_madd_epi16(second, int8_pairs(scale1)));
    }

  protected:
    static __m256i broadcast(const void* four_bytes) {
        int32_t word;
        __builtin_memcpy(&word, four_bytes, 4);
        return _mm256_set1_epi32(word);
    }

  private:
    template <int offset>
    static __m256i minus_offset(__m256i pairs) {
        return offset == 0 ? _mm256_setzero_si256() : _mm256_mullo_epi16(pairs, _mm256_set1_epi16(-offset));
    }
    /// Eight int8, each twice as int16 in one lane.
    static __m256i int8_pairs(const int8_t* p) {
        const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
        return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(bytes, bytes));
    }
};

}  // namespace ggmlx
