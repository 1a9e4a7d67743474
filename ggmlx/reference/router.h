#pragma once
// The choice of experts for one token, shared with backends that run on the host, which bring their own functions of a
// whole row.

#include <cstdint>

#include "ggmlx/graph/op.h"

namespace ggmlx {

/// Floats of scratch that route_token needs.
inline int64_t route_scratch_floats(const RouterParams& params, int64_t n_expert) {
    return 2 * n_expert + params.n_groups;
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
