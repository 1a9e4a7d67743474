#pragma once
// The vocabulary of bf16 kernels (simd/avx512_bf16.h, simd/amx_bf16.h) in plain C++, so that their bodies run on any
// machine. It rounds as the instructions are documented to (Intel SDM, VCVTNE2PS2BF16, VDPBF16PS and TDPBF16PS): to
// nearest even, subnormal inputs and results as zeros, products added with one rounding.

#include <gtest/gtest.h>

#include <cmath>

#include "ggmlx/backend/cpu/kernels/matmul_bf16.inl.h"
#include "ggmlx/backend/cpu/simd/bf16_e2m1.h"
#include "ggmlx/backend/cpu/simd/scalar.h"

namespace ggmlx::test {

struct EmulatedBf16 : Scalar {
    /// As AVX-512: w + 128.
    static Bytes signed_bytes(Bytes w) {
        for (auto& row : w.v)
            for (uint8_t& byte : row) byte ^= 0x80;
        return w;
    }
    template <int j>
    static Rows rows_u8(Bytes a) {
        Rows r;
        for (int i = 0; i < 8; ++i) r.v[i] = a.v[i][j];
        return r;
    }
    static void store_pairs(void* p, Rows first, Rows second) {
        uint16_t pairs[8][2];
        for (int i = 0; i < 8; ++i) {
            pairs[i][0] = rounded(first.v[i]);
            pairs[i][1] = rounded(second.v[i]);
        }
        std::memcpy(p, pairs, sizeof pairs);
    }
    static bool any_above(const uint8_t (&e)[16], int n) {
        for (const uint8_t byte : e)
            if (byte > n) return true;
        return false;
    }
    static Ints e2m1_lowering(const uint8_t* e) {
        Ints steps;
        for (int i = 0; i < 8; ++i) steps.v[i] = (kLargestLoweredE8M0 - e[i]) << 7;
        return steps;
    }
    template <int half>
    static void store_e2m1_pairs(void* p, Bytes codes, Ints lowering) {
        uint16_t pairs[8][2];
        for (int i = 0; i < 8; ++i)
            for (int j = 0; j < 2; ++j) {
                const uint8_t code = codes.v[i][2 * half + j];
                const int magnitude = kRaisedE2M1[code] - lowering.v[i];
                pairs[i][j] = static_cast<uint16_t>((magnitude > 0 ? magnitude : 0) | (code & 8) << 12);
            }
        std::memcpy(p, pairs, sizeof pairs);
    }
    static Rows add_pairs(Rows sum, Bytes w, const uint16_t* x) {
        for (int i = 0; i < 8; ++i) {
            uint16_t pair[2];
            std::memcpy(pair, w.v[i], sizeof pair);
            for (int j : {1, 0}) sum.v[i] = add_product(sum.v[i], pair[j], x[j]);
        }
        return sum;
    }
    static void round32(const float* x, uint16_t* out) {
        for (int i = 0; i < 32; ++i) out[i] = rounded(x[i]);
    }
    static void round32_f16(const uint16_t* x, uint16_t* out) {
        for (int i = 0; i < 32; ++i) out[i] = rounded(f16_to_f32(x[i]));
    }

    static void configure() { tiles() = {}, tiles().configured = true; }
    static void release() { tiles().configured = false; }
    template <int tile>
    static void clear() {
        EXPECT_TRUE(tiles().configured);
        tiles().at[tile] = {};
    }
    template <int tile>
    static void load(const void* p) {
        EXPECT_TRUE(tiles().configured);
        std::memcpy(&tiles().at[tile], p, sizeof(Tile));
    }
    template <int g, int r>
    static void multiply() {
        const Tile &x = tiles().at[4 + g], &w = tiles().at[6 + r];
        Tile& sums = tiles().at[2 * g + r];
        for (int c = 0; c < 16; ++c)
            for (int row = 0; row < 16; ++row) {
                float odd_and_even[2] = {0, 0};
                for (int k = 0; k < 16; ++k)
                    for (int j = 0; j < 2; ++j)
                        odd_and_even[j] = add_product(odd_and_even[j], x.words(c)[2 * k + j], w.words(k)[2 * row + j]);
                sums.floats(c)[row] = flushed(sums.floats(c)[row] + flushed(odd_and_even[0] + odd_and_even[1]));
            }
    }
    template <int tile>
    static void save(float (*sums)[16]) {
        std::memcpy(sums, &tiles().at[tile], sizeof(Tile));
    }

  private:
    struct Tile {
        alignas(64) std::byte bytes[16][64] = {};
        const uint16_t* words(int row) const { return reinterpret_cast<const uint16_t*>(bytes[row]); }
        float* floats(int row) { return reinterpret_cast<float*>(bytes[row]); }
    };
    struct Registers {
        Tile at[8];
        bool configured = false;
    };
    static Registers& tiles() {
        thread_local Registers registers;
        return registers;
    }
    static float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
    static uint16_t rounded(float x) { return f32_to_bf16(flushed(x)); }
    static float add_product(float sum, uint16_t a, uint16_t b) {
        return flushed(std::fma(flushed(bf16_to_f32(a)), flushed(bf16_to_f32(b)), sum));
    }
};

}  // namespace ggmlx::test
