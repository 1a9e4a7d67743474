#pragma once
// The one rule by which activations become int8 before an integer dot product. Every backend must equal it bit for bit.
//
// Per 32 values: amax = max |x|, s = amax / 127 in float32, q = round-to-nearest-even(x * (127 / amax)). amax below
// 1e-30 gives q = 0 and s = 0. Padding of the last block counts as zeros.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ggmlx {

inline constexpr int kActivationBlock = 32;

/// Quantizes n <= 32 values (the rest of q is zeroed) and returns the scale. If a value is NaN or infinite the result
/// is zeros with scale NaN; the caller reports it.
inline float quantize_activation_block(const float* x, int n, int8_t* q) {
    float amax = 0.0f;
    bool finite = true;
    for (int i = 0; i < n; ++i) {
        finite &= std::isfinite(x[i]);
        amax = std::max(amax, std::fabs(x[i]));
    }
    std::fill(q, q + kActivationBlock, int8_t{0});
    if (!finite) return std::nanf("");
    if (amax < 1e-30f) return 0.0f;
    const float inverse = 127.0f / amax;
    for (int i = 0; i < n; ++i) q[i] = static_cast<int8_t>(std::nearbyint(x[i] * inverse));
    return amax / 127.0f;
}

}  // namespace ggmlx
