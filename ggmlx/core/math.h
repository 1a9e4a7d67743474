#pragma once
// Integer arithmetic that notices overflow, and rounding up. Sizes that come from a file or a user go through these.

#include <cstdint>
#include <optional>

namespace ggmlx {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
constexpr int64_t round_up(int64_t a, int64_t multiple) { return ceil_div(a, multiple) * multiple; }

/// a * b and a + b, or nothing when the result does not fit 64 bits.
inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
    uint64_t r;
    return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
    uint64_t r;
    return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}
/// The next multiple of a power of two, or nothing on overflow.
inline std::optional<uint64_t> checked_round_up(uint64_t a, uint64_t multiple) {
    auto sum = checked_add(a, multiple - 1);
    return sum ? std::optional(*sum & ~(multiple - 1)) : std::nullopt;
}

}  // namespace ggmlx
