#pragma once
// The choice of experts for one token, shared with backends that run on the host, which bring their own functions of a
// whole row.

#include <cmath>
#include <cstdint>

#include "ggmlx/graph/op.h"

namespace ggmlx {

/// Floats of scratch that route_token needs.
inline int64_t route_scratch_floats(const RouterParams& params, int64_t n_expert) {
    return 2 * n_expert + params.n_groups;
}

/// The sum of the n_best largest of x [n], largest first: what a group is worth. constexpr, so that code of any device
/// may call it.
template <class Index>
constexpr float sum_of_best(const float* x, Index n, int32_t n_best) noexcept {
    float sum = 0.0f, before = INFINITY;
    Index before_at = -1;
    for (int32_t i = 0; i < n_best; ++i) {
        Index best = -1;
        for (Index j = 0; j < n; ++j) {
            const bool taken = x[j] > before || (x[j] == before && j <= before_at);
            if (!taken && (best < 0 || x[j] > x[best])) best = j;
        }
        sum += x[best];
        before = x[best];
        before_at = best;
    }
    return sum;
}

/// y = f(x) for rows of n values, with the bits of the reference's softmax and sigmoid.
struct RouterMath {
    void (*softmax)(const float* x, float* y, int64_t n) noexcept;
    void (*sigmoid)(const float* x, float* y, int64_t n) noexcept;
};
extern const RouterMath kReferenceRouterMath;

/// ids and weights [k] from logits [n_expert] as ops.h router() says; bias may be null. False if a logit is not finite:
/// then ids are 0 … k-1 and weights 0.
bool route_token(const RouterParams& params, const float* logits, const float* bias, int64_t n_expert, float* scratch,
                 int32_t* ids, float* weights, const RouterMath& math = kReferenceRouterMath) noexcept;

}  // namespace ggmlx
