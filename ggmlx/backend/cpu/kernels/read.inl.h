#pragma once
// Reading memory and nothing else: the rate that weights cannot come faster than.

#include "ggmlx/backend/cpu/kernels/matmul_tiles.inl.h"

namespace ggmlx {

/// Sixteen independent sums keep as many loads under way as the processor can hold.
template <class Isa>
uint64_t read_lines(const void* lines, int64_t n_lines) noexcept {
    constexpr int kWords = 16;  // two lines
    const auto* words = static_cast<const uint64_t*>(lines);
    uint64_t sums[kWords] = {};
    for (int64_t line = 0; line + 2 <= n_lines; line += 2, words += kWords) {
        prefetch_ahead<Isa>(words, kWords * sizeof(uint64_t));
        for (int i = 0; i < kWords; ++i) sums[i] += words[i];
    }
    uint64_t sum = 0;
    for (uint64_t s : sums) sum += s;
    return sum;
}

}  // namespace ggmlx
