// Rotary position embedding.

#include <algorithm>

#include "ggmlx/backend/cuda/kernels/math.cuh"
#include "ggmlx/backend/cuda/ops.h"

namespace ggmlx::cuda {
namespace {

struct Frequencies {
    float of_pair[kMaxRopePairs];
};

__global__ void rope_table_kernel(Frequencies frequencies, float magnitude, const int32_t* positions, float* table,
                                  int n_pairs) {
    const int64_t t = blockIdx.x;
    for (int i = threadIdx.x; i < n_pairs; i += blockDim.x) {
        const float angle = static_cast<float>(positions[t]) * frequencies.of_pair[i];
        double s, c;
        sincos(static_cast<double>(angle), &s, &c);
        table[(t * n_pairs + i) * 2] = static_cast<float>(c) * magnitude;
        table[(t * n_pairs + i) * 2 + 1] = static_cast<float>(s) * magnitude;
    }
}

/// One block per head of a token. x and y may be the same.
__global__ void rope_kernel(RopeParams params, const float* x, const float* table, float* y, int n_head, int head_dim,
                            int n_pairs) {
    const int64_t head = blockIdx.x, t = head / n_head;
    x += head * head_dim;
    y += head * head_dim;
    table += t * n_pairs * 2;
    const int step = params.interleaved ? 2 : 1, other = params.interleaved ? 1 : n_pairs;
    for (int i = threadIdx.x; i < n_pairs; i += blockDim.x) {
        const int k0 = params.first + i * step, k1 = k0 + other;
        const float c = table[2 * i], s = params.inverse ? -table[2 * i + 1] : table[2 * i + 1];
        const float x0 = x[k0], x1 = x[k1];
        y[k0] = x0 * c - x1 * s;
        y[k1] = x1 * c + x0 * s;
    }
    for (int d = threadIdx.x; d < head_dim; d += blockDim.x)
        if (d < params.first || d >= params.first + 2 * n_pairs) y[d] = x[d];
}

}  // namespace

void rope_table(const OpCall& call, const Launch& launch) {
    const auto& params = call.param<RopeTableParams>();
    const int64_t n_tokens = call.in[0].shape[0];
    if (n_tokens == 0) return;
    Frequencies frequencies{};
    std::copy(params.inv_freq.begin(), params.inv_freq.end(), frequencies.of_pair);
    rope_table_kernel<<<static_cast<unsigned>(n_tokens), 64, 0, launch.stream>>>(
        frequencies, params.magnitude, call.in[0].as<const int32_t>(), call.out[0].as<float>(),
        static_cast<int>(params.inv_freq.size()));
}

void rope(const OpCall& call, const Launch& launch) {
    const Shape& shape = call.in[0].shape;
    if (shape.n_elements() == 0) return;
    rope_kernel<<<static_cast<unsigned>(shape[0] * shape[1]), 64, 0, launch.stream>>>(
        call.param<RopeParams>(), call.in[0].as<const float>(), call.in[1].as<const float>(), call.out[0].as<float>(),
        static_cast<int>(shape[1]), static_cast<int>(shape[2]), static_cast<int>(call.in[1].shape[1]));
}

}  // namespace ggmlx::cuda
