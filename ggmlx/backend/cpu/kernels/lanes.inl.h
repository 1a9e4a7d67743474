#pragma once
// Reading and writing fewer than eight values at the end of a row, and the exponential of exp.h on eight lanes.

#include "ggmlx/backend/cpu/kernels.h"
#include "ggmlx/reference/exp.h"

namespace ggmlx {

/// n < 8 values, then `rest`.
template <class Isa>
typename Isa::F8 load_first(const float* p, int64_t n, float rest) {
    float lanes[8];
    for (int64_t i = 0; i < 8; ++i) lanes[i] = i < n ? p[i] : rest;
    return Isa::load8(lanes);
}

template <class Isa>
void store_first(float* p, typename Isa::F8 a, int64_t n) {
    float lanes[8];
    Isa::store8(lanes, a);
    for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}

/// y[i] = f(a[i]) and y[i] = f(a[i], b[i]); y may be an input.
template <class Isa, class F>
void map(const float* a, float* y, int64_t n, F f) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) Isa::store8(y + i, f(Isa::load8(a + i)));
    if (i < n) store_first<Isa>(y + i, f(load_first<Isa>(a + i, n - i, 0.0f)), n - i);
}
template <class Isa, class F>
void map(const float* a, const float* b, float* y, int64_t n, F f) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) Isa::store8(y + i, f(Isa::load8(a + i), Isa::load8(b + i)));
    if (i < n) {
        const auto rest = f(load_first<Isa>(a + i, n - i, 0.0f), load_first<Isa>(b + i, n - i, 0.0f));
        store_first<Isa>(y + i, rest, n - i);
    }
}

/// exp_poly of reference/exp.h, step by step.
template <class Isa>
typename Isa::F8 exp8(typename Isa::F8 x) {
    using F8 = typename Isa::F8;
    const F8 n = Isa::round_even(Isa::mul(x, Isa::splat8(kExpLog2e)));
    const F8 minus_n = Isa::mul(n, Isa::splat8(-1.0f));
    F8 r = Isa::fma(minus_n, Isa::splat8(kExpLn2High), x);
    r = Isa::fma(minus_n, Isa::splat8(kExpLn2Low), r);
    F8 p = Isa::fma(Isa::splat8(kExpC6), r, Isa::splat8(kExpC5));
    p = Isa::fma(p, r, Isa::splat8(kExpC4));
    p = Isa::fma(p, r, Isa::splat8(kExpC3));
    p = Isa::fma(p, r, Isa::splat8(kExpC2));
    p = Isa::fma(p, r, Isa::splat8(1.0f));
    p = Isa::fma(p, r, Isa::splat8(1.0f));
    F8 y = Isa::raise_exponent(p, n);
    y = Isa::where_greater(x, Isa::splat8(kExpMax), Isa::splat8(__builtin_inff()), y);
    y = Isa::where_greater(Isa::splat8(kExpMin), x, Isa::splat8(0.0f), y);
    return Isa::keep_nan(x, y);
}

}  // namespace ggmlx
