// Quantizers of the OCP microscaling types: an E8M0 scale per 32 values, chosen among the exponents that can be best.

#include "ggmlx/quant/encode.h"
#include "ggmlx/quant/fit.h"

namespace ggmlx {
namespace {

constexpr int kBlock = 32;

/// 2^(127 - e): what values are multiplied with before they become elements. Exact for every scale byte e <= 254.
float inverse_scale(int e) { return std::ldexp(1.0f, 127 - e); }

/// Nearest E2M1 magnitude of v >= 0, ties to the even code; beyond 6 it is 6. Each term rounds within one stretch of
/// equal steps (0.5 up to 2, 1 up to 4, 2 up to 6) and is constant elsewhere: no branches, so compilers vectorize it.
float e2m1_magnitude(float v) {
    return 0.5f * fit::code(2.0f * v, 0.0f, 4.0f) + fit::code(v - 2.0f, 0.0f, 2.0f) +
           2.0f * fit::code(0.5f * v - 2.0f, 0.0f, 1.0f);
}

uint8_t e2m1_code(float v) {
    constexpr uint8_t kCodeOfDoubled[13] = {0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7};
    const auto doubled = static_cast<int>(2.0f * e2m1_magnitude(std::fabs(v)));
    return static_cast<uint8_t>(kCodeOfDoubled[doubled] | (std::signbit(v) ? 8 : 0));
}

/// Squared error of 32 values at 2^(e - 127), in units of `unit` so that no square leaves the range of float32.
float mxfp4_error(const float* x, int e, float unit) {
    const float to_element = inverse_scale(e);
    float lane[fit::kLanes] = {};
    for (int i = 0; i < kBlock; i += fit::kLanes)
        for (int j = 0; j < fit::kLanes; ++j) {
            const float v = std::fabs(x[i + j] * to_element);
            const float difference = v - e2m1_magnitude(v);
            lane[j] += difference * difference;
        }
    return fit::sum_lanes(lane) * unit * unit;
}

float mxfp8_error(const float* x, int e, float unit) {
    const float to_element = inverse_scale(e);
    float lane[fit::kLanes] = {};
    for (int i = 0; i < kBlock; ++i) {
        const float v = x[i] * to_element;
        const float difference = v - f8_e4m3_to_f32(f32_to_f8_e4m3(v));
        lane[i % fit::kLanes] += difference * difference;
    }
    return fit::sum_lanes(lane) * unit * unit;
}

/// The scale byte among base + first .. base + last with the smallest error, where base brings the largest value into
/// the highest binade of the element type (whose exponent is element_exponent). The base itself wins ties.
template <class ErrorOf>
int best_exponent(const float* x, int element_exponent, int first, int last, ErrorOf error_of) {
    const float largest = std::fabs(fit::extreme<kBlock>(x));
    if (largest == 0.0f) return 0;
    const int most = 254 - element_exponent;  // beyond it the largest element times the scale is no float32
    const int base = std::clamp(std::ilogb(largest) - element_exponent + 127, 0, most);
    int best = base;
    float best_error = error_of(x, base, 1.0f);
    for (int e = std::max(base + first, 0); e <= std::min(base + last, most); ++e) {
        const float error = error_of(x, e, std::ldexp(1.0f, e - base));
        if (error < best_error) best_error = error, best = e;
    }
    return best;
}

}  // namespace

void encode_row(const float* x, TileMXFP4& tile, int r) {
    const int e = best_exponent(x, 2, -1, 1, mxfp4_error);
    const float to_element = inverse_scale(e);
    int8_t q[kBlock];
    for (int k = 0; k < kBlock; ++k) q[k] = static_cast<int8_t>(e2m1_code(x[k] * to_element));
    store_nibbles(q, tile.q, r);
    tile.e[r] = static_cast<uint8_t>(e);
}

void encode_row(const float* x, TileMXFP8& tile, int r) {
    const int e = best_exponent(x, 8, 1, 1, mxfp8_error);  // a lower exponent only clips a type of constant precision
    const float to_element = inverse_scale(e);
    for (int k = 0; k < kBlock; ++k) tile.q[k >> 2][r][k & 3] = f32_to_f8_e4m3(x[k] * to_element);
    tile.e[r] = static_cast<uint8_t>(e);
}

}  // namespace ggmlx
