#include "ggmlx/reference/router.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ggmlx/reference/exp.h"
#include "ggmlx/reference/kernels.h"
#include "ggmlx/reference/sums.h"

namespace ggmlx {
namespace {

constexpr float kLeftOut = -INFINITY;  // below every choice, which is finite

void softmax_of(const float* x, float* y, int64_t n) noexcept {
    const float largest = *std::max_element(x, x + n);
    EightSums sums;
    for (int64_t i = 0; i < n; ++i) sums[i] += y[i] = exp_poly(x[i] - largest);
    const float sum = sums.total();
    for (int64_t i = 0; i < n; ++i) y[i] = y[i] / sum;
}

void sigmoid_of(const float* x, float* y, int64_t n) noexcept { std::transform(x, x + n, y, sigmoid); }

/// Index of the largest value, the lowest among equals; it is then overwritten, so that the next call gives the next.
int64_t take_largest(float* x, int64_t n) noexcept {
    const int64_t best = std::max_element(x, x + n) - x;
    x[best] = kLeftOut;
    return best;
}

/// Leaves out the choices of all groups but the best. worth: n_groups floats.
void keep_best_groups(const RouterParams& params, float* choice, int64_t n_expert, float* worth) noexcept {
    const int64_t size = n_expert / params.n_groups;
    for (int32_t i = 0; i < params.n_groups; ++i) worth[i] = sum_of_best(choice + i * size, size, params.group_best);
    for (int32_t i = 0; i < params.groups_used; ++i) take_largest(worth, params.n_groups);
    for (int32_t i = 0; i < params.n_groups; ++i)
        if (worth[i] != kLeftOut) std::fill_n(choice + i * size, size, kLeftOut);
}

void finish_weights(const RouterParams& params, float* weights, const RouterMath& math) noexcept {
    if (params.score == RouterParams::Score::SoftmaxOfChosen) math.softmax(weights, weights, params.k);
    if (params.normalize) {
        float sum = 0.0f;
        for (int32_t i = 0; i < params.k; ++i) sum += weights[i];
        const float divisor = sum < 1e-20f ? 1e-20f : sum;
        for (int32_t i = 0; i < params.k; ++i) weights[i] = weights[i] / divisor;
    }
    for (int32_t i = 0; i < params.k; ++i) weights[i] = params.scale * weights[i];
}

}  // namespace

const RouterMath kReferenceRouterMath{softmax_of, sigmoid_of};

bool route_token(const RouterParams& params, const float* logits, const float* bias, int64_t n_expert, float* scratch,
                 int32_t* ids, float* weights, const RouterMath& math) noexcept {
    if (!std::all_of(logits, logits + n_expert, [](float v) { return std::isfinite(v); })) {
        std::iota(ids, ids + params.k, 0);
        std::fill(weights, weights + params.k, 0.0f);
        return false;
    }
    float *score = scratch, *choice = scratch + n_expert;
    if (params.score == RouterParams::Score::Softmax)
        math.softmax(logits, score, n_expert);
    else if (params.score == RouterParams::Score::Sigmoid)
        math.sigmoid(logits, score, n_expert);
    else
        std::copy_n(logits, n_expert, score);
    for (int64_t e = 0; e < n_expert; ++e) choice[e] = bias ? score[e] + bias[e] : score[e];
    if (params.n_groups > 1) keep_best_groups(params, choice, n_expert, choice + n_expert);
    for (int32_t i = 0; i < params.k; ++i) {
        ids[i] = static_cast<int32_t>(take_largest(choice, n_expert));
        weights[i] = score[ids[i]];
    }
    finish_weights(params, weights, math);
    return true;
}

void reference::router(const OpCall& call) {
    const auto& params = call.param<RouterParams>();
    const int64_t n_tokens = call.in[0].shape[0], n_expert = call.in[0].shape[1], k = params.k;
    const float* bias = call.in.size() > 2 ? call.in[2].as<const float>() : nullptr;
    std::vector<float> scratch(static_cast<size_t>(route_scratch_floats(params, n_expert)));
    for (int64_t t = 0; t < n_tokens; ++t) {
        float* weights = call.out[0].as<float>() + t * k;
        int32_t* ids = call.out[1].as<int32_t>() + t * k;
        if (call.in[1].as<const int32_t>()[t] < 0) {
            std::fill(weights, weights + k, 0.0f);
            std::fill(ids, ids + k, -1);
        } else if (!route_token(params, call.in[0].as<const float>() + t * n_expert, bias, n_expert, scratch.data(),
                                ids, weights)) {
            call.status->report(Fault::NonFinite, t);
        }
    }
}

}  // namespace ggmlx
