#include <cmath>

#include "ggmlx/reference/exp.h"
#include "ggmlx/reference/kernels.h"
#include "ggmlx/reference/sums.h"

namespace ggmlx::reference {
namespace {

/// Calls f(x, y, n) for every row of in[0] and out[0].
template <class F>
void for_each_row(const OpCall& call, F f) {
    const Shape& shape = call.in[0].shape;
    const int64_t n = shape[-1], n_rows = shape.n_rows();
    for (int64_t t = 0; t < n_rows; ++t) f(call.in[0].as<const float>() + t * n, call.out[0].as<float>() + t * n, n);
}

}  // namespace

void rms_norm(const OpCall& call) {
    const float eps = call.param<RmsNormParams>().eps;
    const float* weight = call.in.size() > 1 ? call.in[1].as<const float>() : nullptr;
    for_each_row(call, [&](const float* x, float* y, int64_t n) {
        const float s = 1.0f / std::sqrt(dot(x, x, n) / static_cast<float>(n) + eps);
        for (int64_t i = 0; i < n; ++i) y[i] = weight ? (x[i] * s) * weight[i] : x[i] * s;
    });
}

void softmax(const OpCall& call) {
    for_each_row(call, [](const float* x, float* y, int64_t n) {
        float largest = -INFINITY;
        for (int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
        EightSums sums;
        for (int64_t i = 0; i < n; ++i) sums[i] += y[i] = exp_poly(x[i] - largest);
        const float sum = sums.total();
        for (int64_t i = 0; i < n; ++i) y[i] = y[i] / sum;
    });
}

void divide_by_sum(const OpCall& call) {
    for_each_row(call, [](const float* x, float* y, int64_t n) {
        float sum = 0.0f;
        for (int64_t i = 0; i < n; ++i) sum += x[i];
        const float divisor = sum < 1e-20f ? 1e-20f : sum;
        for (int64_t i = 0; i < n; ++i) y[i] = x[i] / divisor;
    });
}

}  // namespace ggmlx::reference
