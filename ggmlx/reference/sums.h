#pragma once
// The order in which float sums are taken: eight partial sums, then pairwise. See reference.h.

#include <array>
#include <cmath>
#include <cstdint>

namespace ggmlx {

class EightSums {
  public:
    /// partial[i mod 8] of index i.
    float& operator[](int64_t i) { return partial_[static_cast<size_t>(i & 7)]; }
    /// (0+4, 1+5, 2+6, 3+7), then +2, then +1.
    float total() const {
        const auto& p = partial_;
        return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
    }

  private:
    std::array<float, 8> partial_{};
};

/// Σ a[k] · b[k] by fused multiply-adds, value k into partial sum k mod 8.
inline float dot(const float* a, const float* b, int64_t n) {
    EightSums sums;
    for (int64_t k = 0; k < n; ++k) sums[k] = std::fma(a[k], b[k], sums[k]);
    return sums.total();
}

}  // namespace ggmlx
