// Rotary positions. Plain C++: a few thousand values per token, rounded products and sums without fused steps.

#include <algorithm>
#include <cmath>

#include "ggmlx/backend/cpu/ops/ops.h"

namespace ggmlx::cpu {
namespace {

/// One head; x and y may be the same.
void rotate(const RopeParams& params, const float* table, int64_t n_pairs, const float* x, float* y,
            int64_t head_dim) noexcept {
    const int64_t pair_step = params.interleaved ? 2 : 1, other = params.interleaved ? 1 : n_pairs;
    if (x != y) std::copy(x, x + head_dim, y);
    for (int64_t i = 0; i < n_pairs; ++i) {
        const int64_t k0 = params.first + i * pair_step, k1 = k0 + other;
        const float c = table[2 * i], s = params.inverse ? -table[2 * i + 1] : table[2 * i + 1];
        const float x0 = x[k0], x1 = x[k1];
        y[k0] = x0 * c - x1 * s;
        y[k1] = x1 * c + x0 * s;
    }
}

}  // namespace

void rope_table_light(const OpCall& call, Worker& worker) noexcept {
    const auto& params = call.param<RopeTableParams>();
    const auto n_pairs = static_cast<int64_t>(params.inv_freq.size());
    const int32_t* positions = call.in[0].as<const int32_t>();
    worker.team.share(call.in[0].shape[0], 1, [&](int64_t t, int64_t) {
        float* table = call.out[0].as<float>() + t * n_pairs * 2;
        for (float inv_freq : params.inv_freq) {
            const float angle = static_cast<float>(positions[t]) * inv_freq;
            *table++ = static_cast<float>(std::cos(static_cast<double>(angle))) * params.magnitude;
            *table++ = static_cast<float>(std::sin(static_cast<double>(angle))) * params.magnitude;
        }
    });
}

void rope_light(const OpCall& call, Worker& worker) noexcept {
    const auto& params = call.param<RopeParams>();
    const Shape& shape = call.in[0].shape;
    const int64_t n_head = shape[1], head_dim = shape[2], n_pairs = call.in[1].shape[1];
    worker.team.share(shape[0] * n_head, std::max<int64_t>(1, 4096 / std::max<int64_t>(head_dim, 1)),
                      [&](int64_t begin, int64_t end) {
                          for (int64_t row = begin; row < end; ++row)
                              rotate(params, call.in[1].as<const float>() + row / n_head * n_pairs * 2, n_pairs,
                                     call.in[0].as<const float>() + row * head_dim,
                                     call.out[0].as<float>() + row * head_dim, head_dim);
                      });
}

}  // namespace ggmlx::cpu
