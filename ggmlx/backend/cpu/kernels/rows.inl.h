#pragma once
// Ops on rows of float32: normalisation, softmax, products, SwiGLU. Sums run in eight partials by index mod 8, one lane
// each, as the reference has them.

#include "ggmlx/backend/cpu/kernels/lanes.inl.h"

namespace ggmlx {

template <class Isa>
void add_rows(const float* a, const float* b, float* y, int64_t n) noexcept {
    map<Isa>(a, b, y, n, [](auto u, auto v) { return Isa::add(u, v); });
}

template <class Isa>
void mul_rows(const float* a, const float* b, float* y, int64_t n) noexcept {
    map<Isa>(a, b, y, n, [](auto u, auto v) { return Isa::mul(u, v); });
}

template <class Isa>
void scale_row(float factor, const float* x, float* y, int64_t n) noexcept {
    const auto f = Isa::splat8(factor);
    map<Isa>(x, y, n, [f](auto v) { return Isa::mul(f, v); });
}

/// y += factor · x, the product rounded first.
template <class Isa>
void add_scaled_row(float factor, const float* x, float* y, int64_t n) noexcept {
    const auto f = Isa::splat8(factor);
    map<Isa>(x, y, y, n, [f](auto v, auto sum) { return Isa::add(sum, Isa::mul(f, v)); });
}

template <class Isa>
void divide_row(float divisor, const float* x, float* y, int64_t n) noexcept {
    const auto d = Isa::splat8(divisor);
    map<Isa>(x, y, n, [d](auto v) { return Isa::div(v, d); });
}

/// weight may be null.
template <class Isa>
void rms_norm_row(const float* x, const float* weight, float* y, int64_t n, float eps) noexcept {
    auto sums = Isa::splat8(0.0f);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const auto v = Isa::load8(x + i);
        sums = Isa::fma(v, v, sums);
    }
    if (i < n) {
        const auto v = load_first<Isa>(x + i, n - i, 0.0f);
        sums = Isa::first_lanes(static_cast<int>(n - i), Isa::fma(v, v, sums), sums);
    }
    const auto s = Isa::splat8(1.0f / __builtin_sqrtf(Isa::reduce(sums) / static_cast<float>(n) + eps));
    if (weight)
        map<Isa>(x, weight, y, n, [s](auto v, auto w) { return Isa::mul(Isa::mul(v, s), w); });
    else
        map<Isa>(x, y, n, [s](auto v) { return Isa::mul(v, s); });
}

template <class Isa>
float largest_of_row(const float* x, int64_t n) noexcept {
    auto largest = Isa::splat8(-__builtin_inff());
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) largest = Isa::max(Isa::load8(x + i), largest);
    if (i < n) largest = Isa::max(load_first<Isa>(x + i, n - i, -__builtin_inff()), largest);
    return Isa::largest(largest);
}

/// y = exp(x - m); returns the sum of all. x and y may be the same.
template <class Isa>
float exp_row(const float* x, float m, float* y, int64_t n) noexcept {
    const auto shift = Isa::splat8(m);
    auto sums = Isa::splat8(0.0f);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const auto e = exp8<Isa>(Isa::sub(Isa::load8(x + i), shift));
        Isa::store8(y + i, e);
        sums = Isa::add(sums, e);
    }
    if (i < n) {
        const auto e = exp8<Isa>(Isa::sub(load_first<Isa>(x + i, n - i, 0.0f), shift));
        store_first<Isa>(y + i, e, n - i);
        sums = Isa::first_lanes(static_cast<int>(n - i), Isa::add(sums, e), sums);
    }
    return Isa::reduce(sums);
}

template <class Isa>
void softmax_row(const float* x, float* y, int64_t n) noexcept {
    const float sum = exp_row<Isa>(x, largest_of_row<Isa>(x, n), y, n);
    divide_row<Isa>(sum, y, y, n);
}

template <class Isa>
void sigmoid_row(const float* x, float* y, int64_t n) noexcept {
    const auto one = Isa::splat8(1.0f), minus_one = Isa::splat8(-1.0f);
    map<Isa>(x, y, n, [=](auto v) { return Isa::div(one, Isa::add(one, exp8<Isa>(Isa::mul(v, minus_one)))); });
}

template <class Isa>
void swiglu_row(const float* gate, const float* up, float* y, int64_t n, const SwiGLUArgs& args) noexcept {
    const auto minus_one = Isa::splat8(-1.0f), one = Isa::splat8(1.0f);
    const auto alpha = Isa::splat8(args.alpha), offset = Isa::splat8(args.up_offset);
    const auto most = Isa::splat8(args.clamp > 0 ? args.clamp : __builtin_inff());
    const auto least = Isa::mul(most, minus_one);
    map<Isa>(gate, up, y, n, [=](auto g, auto u) {
        g = Isa::min(most, g);
        u = Isa::max(least, Isa::min(most, u));
        const auto e = exp8<Isa>(Isa::mul(Isa::mul(alpha, g), minus_one));
        return Isa::mul(Isa::div(g, Isa::add(one, e)), Isa::add(u, offset));
    });
}

}  // namespace ggmlx
