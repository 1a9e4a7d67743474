#include <algorithm>
#include <cmath>

#include "ggmlx/reference/kernels.h"

namespace ggmlx::reference {

void rope_table(const OpCall& call) {
    const auto& params = call.param<RopeTableParams>();
    const int32_t* positions = call.in[0].as<const int32_t>();
    float* table = call.out[0].as<float>();
    for (int64_t t = 0; t < call.in[0].shape[0]; ++t) {
        for (float inv_freq : params.inv_freq) {
            const float angle = static_cast<float>(positions[t]) * inv_freq;
            *table++ = static_cast<float>(std::cos(static_cast<double>(angle))) * params.magnitude;
            *table++ = static_cast<float>(std::sin(static_cast<double>(angle))) * params.magnitude;
        }
    }
}

void rope(const OpCall& call) {
    const auto& params = call.param<RopeParams>();
    const int64_t n_tokens = call.in[0].shape[0], n_head = call.in[0].shape[1], head_dim = call.in[0].shape[2];
    const int64_t n_pairs = call.in[1].shape[1];
    const int64_t pair_step = params.interleaved ? 2 : 1, other = params.interleaved ? 1 : n_pairs;
    for (int64_t t = 0; t < n_tokens; ++t) {
        const float* table = call.in[1].as<const float>() + t * n_pairs * 2;
        for (int64_t h = 0; h < n_head; ++h) {
            const float* x = call.in[0].as<const float>() + (t * n_head + h) * head_dim;
            float* y = call.out[0].as<float>() + (t * n_head + h) * head_dim;
            if (x != y) std::copy(x, x + head_dim, y);
            for (int64_t i = 0; i < n_pairs; ++i) {
                const int64_t k0 = params.first + i * pair_step, k1 = k0 + other;
                const float c = table[2 * i], s = params.inverse ? -table[2 * i + 1] : table[2 * i + 1];
                const float x0 = x[k0], x1 = x[k1];
                y[k0] = x0 * c - x1 * s;
                y[k1] = x1 * c + x0 * s;
            }
        }
    }
}

}  // namespace ggmlx::reference
