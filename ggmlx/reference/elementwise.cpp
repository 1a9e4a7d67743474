#include <algorithm>
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

void clamp(const OpCall& call) {
    const float limit = call.param<ClampParams>().limit;
    const float* x = call.in[0].as<const float>();
    float* y = call.out[0].as<float>();
    const int64_t n = call.in[0].shape.n_elements();
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
}

void sigmoid_gate(const OpCall& call) {
    const int64_t n = call.in[0].shape[1];
    const float *x = call.in[0].as<const float>(), *gate = call.in[1].as<const float>();
    float* y = call.out[0].as<float>();
    for (int64_t i = 0; i < call.in[0].shape.n_elements(); ++i) y[i] = sigmoid(gate[i / n]) * x[i];
}

void slice(const OpCall& call) {
    const int64_t n_x = call.in[0].shape[-1], n = call.out[0].shape[-1], n_rows = call.out[0].shape.n_rows();
    const float* x = call.in[0].as<const float>() + call.param<SliceParams>().first;
    for (int64_t row = 0; row < n_rows; ++row) std::copy_n(x + row * n_x, n, call.out[0].as<float>() + row * n);
}

void concat(const OpCall& call) {
    const int64_t n_a = call.in[0].shape[-1], n_b = call.in[1].shape[-1], n_rows = call.out[0].shape.n_rows();
    float* y = call.out[0].as<float>();
    for (int64_t row = 0; row < n_rows; ++row) {
        y = std::copy_n(call.in[0].as<const float>() + row * n_a, n_a, y);
        y = std::copy_n(call.in[1].as<const float>() + row * n_b, n_b, y);
    }
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
