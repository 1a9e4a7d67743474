#include <algorithm>
#include <cmath>
#include <numeric>

#include "ggmlx/reference/kernels.h"

namespace ggmlx::reference {
namespace {

/// The indices of x, largest value first, lower index first among equals.
std::vector<int32_t> order(const float* x, int64_t n) {
    std::vector<int32_t> index(static_cast<size_t>(n));
    std::iota(index.begin(), index.end(), 0);
    std::stable_sort(index.begin(), index.end(), [x](int32_t a, int32_t b) { return x[a] > x[b]; });
    return index;
}

}  // namespace

void top_k(const OpCall& call) {
    const int64_t n_tokens = call.in[0].shape[0], n = call.in[0].shape[1];
    const int64_t k = call.param<TopKParams>().k;
    const int32_t* rows = call.in.size() > 1 ? call.in[1].as<const int32_t>() : nullptr;
    for (int64_t t = 0; t < n_tokens; ++t) {
        const float* x = call.in[0].as<const float>() + t * n;
        float* weights = call.out[0].as<float>() + t * k;
        int32_t* ids = call.out[1].as<int32_t>() + t * k;
        std::fill(weights, weights + k, 0.0f);
        if (rows && rows[t] < 0) {
            std::fill(ids, ids + k, -1);
        } else if (!std::all_of(x, x + n, [](float v) { return std::isfinite(v); })) {
            std::iota(ids, ids + k, 0);
            call.status->report(Fault::NonFinite, t);
        } else {
            const std::vector<int32_t> index = order(x, n);
            for (int64_t i = 0; i < k; ++i) {
                ids[i] = index[static_cast<size_t>(i)];
                weights[i] = x[ids[i]];
            }
        }
    }
}

}  // namespace ggmlx::reference
