#pragma once
// AVX-512 and AMX with bf16. Of the eight tile registers 0 to 3 are sums [16 columns][16 rows] of float32, 4 and 5 hold
// 32 values of 16 columns, 6 and 7 those of 16 rows. Included by isa/amx_bf16.cpp alone.

#include "ggmlx/backend/cpu/simd/amx_shapes.h"
#include "ggmlx/backend/cpu/simd/avx512_bf16.h"

namespace ggmlx {

struct AmxBf16 : Avx512Bf16 {
    static void configure() {
        static constexpr AmxShapes kShapes{};
        _tile_loadconfig(&kShapes);
    }
    static void release() { _tile_release(); }

    // The instructions name their registers; a number can be no variable.
    template <int tile>
    static void clear() {
        static_assert(tile >= 0 && tile <= 3);
        if constexpr (tile == 0) _tile_zero(0);
        if constexpr (tile == 1) _tile_zero(1);
        if constexpr (tile == 2) _tile_zero(2);
        if constexpr (tile == 3) _tile_zero(3);
    }
    /// 16 rows of 64 bytes that lie one after the other.
    template <int tile>
    static void load(const void* p) {
        static_assert(tile >= 4 && tile <= 7);
        if constexpr (tile == 4) _tile_loadd(4, p, 64);
        if constexpr (tile == 5) _tile_loadd(5, p, 64);
        if constexpr (tile == 6) _tile_loadd(6, p, 64);
        if constexpr (tile == 7) _tile_loadd(7, p, 64);
    }
    /// Adds the products of the columns of register 4 + g and the rows of register 6 + r to register 2 g + r.
    template <int g, int r>
    static void multiply() {
        static_assert(g >= 0 && g <= 1 && r >= 0 && r <= 1);
        if constexpr (g == 0 && r == 0) _tile_dpbf16ps(0, 4, 6);
        if constexpr (g == 0 && r == 1) _tile_dpbf16ps(1, 4, 7);
        if constexpr (g == 1 && r == 0) _tile_dpbf16ps(2, 5, 6);
        if constexpr (g == 1 && r == 1) _tile_dpbf16ps(3, 5, 7);
    }
    template <int tile>
    static void save(float (*sums)[16]) {
        static_assert(tile >= 0 && tile <= 3);
        if constexpr (tile == 0) _tile_stored(0, sums, 64);
        if constexpr (tile == 1) _tile_stored(1, sums, 64);
        if constexpr (tile == 2) _tile_stored(2, sums, 64);
        if constexpr (tile == 3) _tile_stored(3, sums, 64);
    }
};

}  // namespace ggmlx
