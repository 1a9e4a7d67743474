#pragma once
// E2M1 values as bf16, in the form in which a power of two is applied by lowering the exponent.

#include <cstdint>

namespace ggmlx {

/// The largest E8M0 code (times 2^-127) whose values are reached by lowering exponents alone.
inline constexpr int kLargestLoweredE8M0 = 252;
/// By code, the magnitude of an E2M1 value times 2^(252 - 127): a bf16 from which (252 - e) · 2^7 is to be taken. What
/// falls below the smallest exponent becomes 0, as zero does.
inline constexpr uint16_t kRaisedE2M1[16] = {
    0, 251 << 7, 252 << 7, (252 << 7) + 64, 253 << 7, (253 << 7) + 64, 254 << 7, (254 << 7) + 64,
    0, 251 << 7, 252 << 7, (252 << 7) + 64, 253 << 7, (253 << 7) + 64, 254 << 7, (254 << 7) + 64};

}  // namespace ggmlx
