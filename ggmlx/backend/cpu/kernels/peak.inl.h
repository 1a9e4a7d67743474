#pragma once
// Multiplying int8 values in registers and nothing else: the rate that products cannot come faster than.

#include "ggmlx/backend/cpu/kernels.h"

namespace ggmlx {

/// Returns the number of multiply-adds done.
template <class Isa>
int64_t int8_peak(int64_t n_rounds) noexcept {
    constexpr int kSums = 8;  // independent, so that the latency of one addition does not count
    uint8_t bytes[64];
    for (int i = 0; i < 64; ++i) bytes[i] = static_cast<uint8_t>(i + n_rounds % 2);
    const auto w = Isa::load_bytes(bytes);
    typename Isa::Ints sums[kSums];
    for (auto& sum : sums) sum = Isa::bits(Isa::ints_u8(bytes), 0, 1);
    for (int64_t round = 0; round < n_rounds; ++round)
        for (auto& sum : sums) sum = Isa::add_products(sum, w, w);
    float total[16] = {};
    for (auto& sum : sums) Isa::store_rows(total, Isa::add(Isa::load_rows(total), Isa::to_rows(sum)));
    const bool never = total[0] == -1.0f;  // makes the sums needed
    return n_rounds * kSums * 4 * Isa::kRows + never;
}

}  // namespace ggmlx
