#include <cstring>

#include "ggmlx/reference/exp.h"
#include "ggmlx/reference/kernels.h"

namespace ggmlx::reference {
namespace {

/// y[i] = f(a[i], b[i]); a shorter b repeats for every row.
template <class F>
void binary(const OpCall& call, F f) {
    const float* a = call.in[0].as<const float>();
    const float* b = call.in[1].as<const float>();
    float* y = call.out[0].as<float>();
    const int64_t n = call.in[0].shape.n_elements(), n_b = call.in[1].shape.n_elements();
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i % n_b]);
}

}  // namespace

void add(const OpCall& call) {
    binary(call, [](float a, float b) { return a + b; });
}

void mul(const OpCall& call) {
    binary(call, [](float a, float b) { return a * b; });
}

void scale(const OpCall& call) {
    const float factor = call.param<ScaleParams>().factor;
    const float* x = call.in[0].as<const float>();
    float* y = call.out[0].as<float>();
    const int64_t n = call.in[0].shape.n_elements();
    for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

float swiglu_value(float gate, float up, const SwiGLUParams& params) {
    if (params.clamp > 0) {
        gate = gate > params.clamp ? params.clamp : gate;
        up = up > params.clamp ? params.clamp : up;
        up = up < -params.clamp ? -params.clamp : up;
    }
    return gated(gate, params.alpha) * (up + params.up_offset);
}

void swiglu(const OpCall& call) {
    const auto& params = call.param<SwiGLUParams>();
    binary(call, [&](float gate, float up) { return swiglu_value(gate, up, params); });
}

void copy(const OpCall& call) {
    const TensorView& x = call.in[0];
    std::memcpy(call.out[0].data, x.data, static_cast<size_t>(storage_bytes(x.dtype, x.shape)));
}

}  // namespace ggmlx::reference
