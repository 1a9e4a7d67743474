#pragma once
// AVX-512 whose panels hold signed weights, as the products of AMX tiles read them. Included by isa/amx.cpp alone.

#include "ggmlx/backend/cpu/simd/avx512.h"

namespace ggmlx {

struct Amx : Avx512 {
    template <int offset>
    static Bytes panel_bytes(Bytes w) {
        return _mm512_sub_epi8(w, _mm512_set1_epi8(offset));
    }
    static Bytes signed_bytes(Bytes w) { return w; }
};

}  // namespace ggmlx
