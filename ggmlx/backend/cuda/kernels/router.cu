// The choice of experts, one warp per token, operation by operation as the reference does it: the same choice and bits.

#include <type_traits>

#include "ggmlx/backend/cuda/kernels/math.cuh"
#include "ggmlx/backend/cuda/ops.h"
#include "ggmlx/reference/router.h"

namespace ggmlx::cuda {
namespace {

__device__ bool all_finite(const float* x, int64_t n) {
    bool finite = true;
    for (int64_t i = threadIdx.x; i < n; i += kWarp) finite &= isfinite(x[i]) != 0;
    return __all_sync(kAllLanes, finite);
}

/// Values i, i + 32, … of a row in the registers of lane i, so that the largest is found by shuffles alone.
template <int kPerLane>
class Candidates {
  public:
    __device__ Candidates(const float* x, int n) : n_(n) {
        for (int m = 0; m < kPerLane; ++m) {
            const int i = m * kWarp + static_cast<int>(threadIdx.x);
            values_[m] = i < n ? x[i] : -INFINITY;
        }
    }
    /// Index of the largest value, the lowest among equals, for all lanes; it is taken out.
    __device__ int take_largest() {
        float best = -INFINITY;
        int at = n_;
#pragma unroll
        for (int m = 0; m < kPerLane; ++m) {
            const int i = m * kWarp + static_cast<int>(threadIdx.x);
            if (i < n_ && (at == n_ || values_[m] > best)) best = values_[m], at = i;
        }
        for (int step = kWarp / 2; step > 0; step /= 2) {
            const float other = __shfl_xor_sync(kAllLanes, best, step);
            const int other_at = __shfl_xor_sync(kAllLanes, at, step);
            const bool take = other_at < n_ && (at == n_ || other > best || (other == best && other_at < at));
            if (take) best = other, at = other_at;
        }
#pragma unroll
        for (int m = 0; m < kPerLane; ++m)
            if (m * kWarp + static_cast<int>(threadIdx.x) == at) values_[m] = -INFINITY;
        return at;
    }

  private:
    float values_[kPerLane];
    int n_;
};

/// Softmax of x [n] in shared memory, summed in eight partial sums as the reference does. y may be x.
__device__ void softmax_exact(const float* x, float* y, int n) {
    float largest = -INFINITY;
    for (int i = threadIdx.x; i < n; i += kWarp) largest = x[i] > largest ? x[i] : largest;
    largest = warp_max(largest);
    for (int i = threadIdx.x; i < n; i += kWarp) y[i] = exp_exact(x[i] - largest);
    __syncwarp();
    float sum = 0.0f;
    for (int i = threadIdx.x & 7; i < n; i += 8) sum += y[i];
    sum += __shfl_xor_sync(kAllLanes, sum, 4);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    __syncwarp();
    for (int i = threadIdx.x; i < n; i += kWarp) y[i] = y[i] / sum;
    __syncwarp();
}

__device__ void keep_best_groups(const RouterParams& params, float* choice, int n_expert, float* worth) {
    const int size = n_expert / params.n_groups;
    for (int i = threadIdx.x; i < params.n_groups; i += kWarp)
        worth[i] = sum_of_best(choice + i * size, size, params.group_best);
    __syncwarp();
    Candidates<kMaxExpertGroups / kWarp> groups(worth, params.n_groups);
    __syncwarp();
    for (int i = 0; i < params.groups_used; ++i) {
        const int best = groups.take_largest();
        if (threadIdx.x == 0) worth[best] = -INFINITY;
    }
    __syncwarp();
    for (int i = threadIdx.x; i < n_expert; i += kWarp)
        if (worth[i / size] != -INFINITY) choice[i] = -INFINITY;
    __syncwarp();
}

__device__ void finish_weights(const RouterParams& params, float* weights) {
    if (params.score == RouterParams::Score::SoftmaxOfChosen) softmax_exact(weights, weights, params.k);
    float divisor = 1.0f;
    if (params.normalize) {
        float sum = 0.0f;
        for (int i = 0; i < params.k; ++i) sum += weights[i];
        divisor = sum < 1e-20f ? 1e-20f : sum;
    }
    __syncwarp();
    for (int i = threadIdx.x; i < params.k; i += kWarp) {
        const float w = params.normalize ? weights[i] / divisor : weights[i];
        weights[i] = params.scale * w;
    }
    __syncwarp();
}

/// ids 0 … k-1 (or -1) and weights 0.
__device__ void choose_nothing(int32_t* ids, float* weights, int k, bool is_padding) {
    for (int i = threadIdx.x; i < k; i += kWarp) ids[i] = is_padding ? -1 : i, weights[i] = 0.0f;
}

template <int kPerLane>
__global__ void router_kernel(RouterParams params, const float* all_logits, const int32_t* rows, const float* bias,
                              int n_expert, float* all_weights, int32_t* all_ids, StatusWord* status) {
    __shared__ float score[kMaxExperts], choice[kMaxExperts], worth[kMaxExpertGroups], chosen[kMaxExperts];
    const int64_t t = blockIdx.x;
    const float* logits = all_logits + t * n_expert;
    float* weights = all_weights + t * params.k;
    int32_t* ids = all_ids + t * params.k;
    if (rows[t] < 0) return choose_nothing(ids, weights, params.k, true);
    if (!all_finite(logits, n_expert)) {
        if (threadIdx.x == 0) report(status, Fault::NonFinite, t);
        return choose_nothing(ids, weights, params.k, false);
    }
    for (int i = threadIdx.x; i < n_expert; i += kWarp)
        score[i] = params.score == RouterParams::Score::Sigmoid ? sigmoid_exact(logits[i]) : logits[i];
    __syncwarp();
    if (params.score == RouterParams::Score::Softmax) softmax_exact(score, score, n_expert);
    for (int i = threadIdx.x; i < n_expert; i += kWarp) choice[i] = bias ? score[i] + bias[i] : score[i];
    __syncwarp();
    if (params.n_groups > 1) keep_best_groups(params, choice, n_expert, worth);
    Candidates<kPerLane> candidates(choice, n_expert);
    for (int i = 0; i < params.k; ++i) {
        const int id = candidates.take_largest();
        if (threadIdx.x == 0) ids[i] = id, chosen[i] = score[id];
    }
    __syncwarp();
    finish_weights(params, chosen);
    for (int i = threadIdx.x; i < params.k; i += kWarp) weights[i] = chosen[i];
}

template <int kPerLane>
__global__ void top_k_kernel(const float* all_x, const int32_t* rows, int n, int k, float* all_weights,
                             int32_t* all_ids, StatusWord* status) {
    const int64_t t = blockIdx.x;
    const float* x = all_x + t * n;
    float* weights = all_weights + t * k;
    int32_t* ids = all_ids + t * k;
    if (rows && rows[t] < 0) return choose_nothing(ids, weights, k, true);
    if (!all_finite(x, n)) {
        if (threadIdx.x == 0) report(status, Fault::NonFinite, t);
        return choose_nothing(ids, weights, k, false);
    }
    Candidates<kPerLane> candidates(x, n);
    for (int i = 0; i < k; ++i) {
        const int id = candidates.take_largest();
        if (threadIdx.x == 0) ids[i] = id, weights[i] = x[id];
    }
}

/// Calls f with the number of values per lane as a constant.
template <class F>
void with_values_per_lane(int64_t n, F f) {
    if (n <= 2 * kWarp) return f(std::integral_constant<int, 2>{});
    if (n <= 4 * kWarp) return f(std::integral_constant<int, 4>{});
    if (n <= 8 * kWarp) return f(std::integral_constant<int, 8>{});
    if (n <= 16 * kWarp) return f(std::integral_constant<int, 16>{});
    f(std::integral_constant<int, kMaxExperts / kWarp>{});
}

}  // namespace

void router(const OpCall& call, const Launch& launch) {
    const int64_t n_tokens = call.in[0].shape[0];
    if (n_tokens == 0) return;
    const float* bias = call.in.size() > 2 ? call.in[2].as<const float>() : nullptr;
    const int64_t n_expert = call.in[0].shape[1];
    with_values_per_lane(n_expert, [&](auto per_lane) {
        router_kernel<per_lane()><<<static_cast<unsigned>(n_tokens), kWarp, 0, launch.stream>>>(
            call.param<RouterParams>(), call.in[0].as<const float>(), call.in[1].as<const int32_t>(), bias,
            static_cast<int>(n_expert), call.out[0].as<float>(), call.out[1].as<int32_t>(), status_word(call));
    });
}

void top_k(const OpCall& call, const Launch& launch) {
    const int64_t n_tokens = call.in[0].shape[0];
    if (n_tokens == 0) return;
    const int32_t* rows = call.in.size() > 1 ? call.in[1].as<const int32_t>() : nullptr;
    const int64_t n = call.in[0].shape[1];
    with_values_per_lane(n, [&](auto per_lane) {
        top_k_kernel<per_lane()><<<static_cast<unsigned>(n_tokens), kWarp, 0, launch.stream>>>(
            call.in[0].as<const float>(), rows, static_cast<int>(n), call.param<TopKParams>().k,
            call.out[0].as<float>(), call.out[1].as<int32_t>(), status_word(call));
    });
}

}  // namespace ggmlx::cuda
