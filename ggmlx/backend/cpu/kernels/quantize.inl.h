#pragma once
// Activations to int8 (the rule of quant/activation.h), with the block sums that the dot products want.

#include "ggmlx/backend/cpu/kernels.h"

namespace ggmlx {

/// The last block of a row may have fewer than 32 values; the rest counts as zeros. False if a value is not finite:
/// the block is then zeros with scale NaN.
template <class Isa>
bool quantize_block(const float* x, int n, ActivationBlock& out) {
    using F8 = typename Isa::F8;
    alignas(32) float padded[32];
    if (n < 32) {
        for (int i = 0; i < 32; ++i) padded[i] = i < n ? x[i] : 0.0f;
        x = padded;
    }
    F8 most = Isa::splat8(0.0f);
    for (int i = 0; i < 32; i += 8) most = Isa::abs_bits_max(Isa::load8(x + i), most);
    const float amax = Isa::largest_abs(most);
    const bool finite = amax <= 3.402823466e38f;  // false for NaN
    if (!finite || amax < 1e-30f) {
        out = ActivationBlock{};
        out.scale = finite ? 0.0f : __builtin_nanf("");
        return finite;
    }
    const F8 inverse = Isa::splat8(127.0f / amax);
    for (int i = 0; i < 32; i += 8) Isa::store8_int8(out.q + i, Isa::mul(Isa::load8(x + i), inverse));
    out.scale = amax / 127.0f;
    Isa::sum_pairs(out.q, out.pair);
    for (int i = 0; i < 2; ++i) out.pair[2][i] = static_cast<int16_t>(out.pair[0][i] + out.pair[1][i]);
    const int sum = out.pair[2][0] + out.pair[2][1];
    out.sum = static_cast<float>(sum);
    out.minus_offset[0] = -8 * sum;
    out.minus_offset[1] = -12 * sum;
    out.minus_offset[2] = -128 * sum;
    return true;
}

/// CpuKernels::quantize_row.
template <class Isa>
bool quantize_row(const float* x, int64_t n, int64_t begin, int64_t end, ActivationBlock* out,
                  int group_partials) noexcept {
    const bool in_group = group_partials > 0;
    const int shift = in_group ? __builtin_ctz(static_cast<unsigned>(group_partials)) : 0, mask = group_partials - 1;
    const int64_t per_partial = ((n + 31) / 32 + mask) >> shift;
    bool finite = true;
    for (int64_t b = begin; b < end; ++b) {
        const int64_t left = n - 32 * b;
        const int64_t place = in_group ? ((b & mask) * per_partial + (b >> shift)) * kGroupColumns : b;
        finite &= quantize_block<Isa>(x + 32 * b, left < 32 ? static_cast<int>(left) : 32, out[place]);
    }
    return finite;
}

}  // namespace ggmlx
