// The choice of experts: one token per claim, in the reference's own words.

#include "ggmlx/reference/router.h"

#include <algorithm>

#include "ggmlx/backend/cpu/ops/ops.h"
#include "ggmlx/backend/cpu/ops/scratch.h"

namespace ggmlx::cpu {
namespace {

/// Scratch of one thread; threads do not share cache lines.
int64_t thread_floats(const RouterParams& params, int64_t n_expert) {
    return round_up(route_scratch_floats(params, n_expert), 16);
}

}  // namespace

void router_light(const OpCall& call, Worker& worker) noexcept {
    const auto& params = call.param<RouterParams>();
    const int64_t n_expert = call.in[0].shape[1], k = params.k;
    const RouterMath math{worker.kernels.softmax, worker.kernels.sigmoid};
    const float* bias = call.in.size() > 2 ? call.in[2].as<const float>() : nullptr;
    float* scratch = reinterpret_cast<float*>(call.scratch) + worker.team.index() * thread_floats(params, n_expert);
    worker.team.share(call.in[0].shape[0], 1, [&](int64_t t, int64_t) {
        float* weights = call.out[0].as<float>() + t * k;
        int32_t* ids = call.out[1].as<int32_t>() + t * k;
        if (call.in[1].as<const int32_t>()[t] < 0) {
            std::fill(weights, weights + k, 0.0f);
            return std::fill(ids, ids + k, -1);
        }
        const float* logits = call.in[0].as<const float>() + t * n_expert;
        if (!route_token(params, logits, bias, n_expert, scratch, ids, weights, math))
            call.status->report(Fault::NonFinite, t);
    });
}

size_t router_scratch(const Node& node, const TeamSize& team) {
    Scratch scratch(nullptr);
    scratch.take<float>(team.n_threads * thread_floats(std::get<RouterParams>(node.params), node.inputs[0].dim(1)));
    return scratch.used_bytes();
}

}  // namespace ggmlx::cpu
