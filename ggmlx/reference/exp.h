#pragma once
// The project's one exponential, and what is made of it. Every vector and device version must equal it bit for bit, so
// it is built from operations that all of them have: rounding to the nearest integer (ties to even), fused
// multiply-add, an integer shift and add, compare and select.
//
//   n = rne(x · log2 e);   r = x - n · ln 2 in two fused steps, |r| <= 0.347;
//   p = 1 + r + c2 r² + … + c6 r⁶ by Horner's rule, six fused steps;   the exponent of p is raised by n.
//
// c2 … c6 minimise the largest relative error of the polynomial (3.1e-9) with the first two coefficients held at 1; we
// computed them by Remez' exchange. The result is within 0.9 ulp of e^x. Above kExpMax (the last argument with a finite
// result) it is +inf, below kExpMin (the first with a normal one) it is 0: no subnormal result. NaN stays NaN.

#include <bit>
#include <cmath>
#include <cstdint>

namespace ggmlx {

inline constexpr float kExpMax = 0x1.62e42ep+6f;   ///< 88.7228317
inline constexpr float kExpMin = -0x1.5d589ep+6f;  ///< -87.3365402
inline constexpr float kExpLog2e = 0x1.715476p+0f;
inline constexpr float kExpLn2High = 0x1.62e4p-1f;  ///< 15 bits, so n times it is exact
inline constexpr float kExpLn2Low = 0x1.7f7d1cp-20f;
inline constexpr float kExpC2 = 0x1.fffffcp-2f;
inline constexpr float kExpC3 = 0x1.555492p-3f;
inline constexpr float kExpC4 = 0x1.5558f2p-5f;
inline constexpr float kExpC5 = 0x1.123a2p-7f;
inline constexpr float kExpC6 = 0x1.6a23dp-10f;

inline float exp_poly(float x) {
    if (std::isnan(x)) return x;
    if (x > kExpMax) return INFINITY;
    if (x < kExpMin) return 0.0f;
    const float n = std::nearbyint(x * kExpLog2e);
    float r = std::fma(-n, kExpLn2High, x);
    r = std::fma(-n, kExpLn2Low, r);
    float p = std::fma(kExpC6, r, kExpC5);
    p = std::fma(p, r, kExpC4);
    p = std::fma(p, r, kExpC3);
    p = std::fma(p, r, kExpC2);
    p = std::fma(p, r, 1.0f);
    p = std::fma(p, r, 1.0f);
    return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (static_cast<uint32_t>(static_cast<int32_t>(n)) << 23));
}

/// 1 / (1 + e^-x): one addition, one division.
inline float sigmoid(float x) { return 1.0f / (1.0f + exp_poly(-x)); }

/// gate / (1 + e^-(alpha · gate)): gate · sigmoid(alpha · gate) with one division instead of a division and a product.
inline float gated(float gate, float alpha) { return gate / (1.0f + exp_poly(-(alpha * gate))); }

/// x / (1 + e^-x)
inline float silu(float x) { return gated(x, 1.0f); }

}  // namespace ggmlx
