// Ops that go over rows once: elementwise work, norms, softmax, copies. The memory's rate bounds them; most are so
// small that starting them is what they cost.

#include <algorithm>

#include "ggmlx/backend/cuda/kernels/math.cuh"
#include "ggmlx/backend/cuda/ops.h"

namespace ggmlx::cuda {
namespace {

constexpr int kThreads = 256;

/// y[i] = f(i) for i < n.
template <class F>
__global__ void each_kernel(float* y, int64_t n, F f) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += step) y[i] = f(i);
}

template <class F>
void for_each(const OpCall& call, const Launch& launch, F f) {
    const int64_t n = call.out[0].shape.n_elements();
    if (n == 0) return;
    const auto n_blocks = static_cast<unsigned>(std::min<int64_t>(ceil_div(n, kThreads), 16 * launch.n_sm));
    each_kernel<<<n_blocks, kThreads, 0, launch.stream>>>(call.out[0].as<float>(), n, f);
}

__global__ void rms_norm_kernel(const float* x, const float* weight, float* y, int64_t n, float eps) {
    __shared__ float shared[kWarp];
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum = __fmaf_rn(x[i], x[i], sum);
    const float s = 1.0f / sqrtf(block_sum(sum, shared) / static_cast<float>(n) + eps);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = weight ? (x[i] * s) * weight[i] : x[i] * s;
}

__global__ void softmax_kernel(const float* x, float* y, int64_t n) {
    __shared__ float for_max[kWarp], for_sum[kWarp];
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float largest = -INFINITY;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) largest = x[i] > largest ? x[i] : largest;
    largest = block_max(largest, for_max);
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += exp_exact(x[i] - largest);
    sum = block_sum(sum, for_sum);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = exp_exact(x[i] - largest) / sum;
}

/// One thread per row: rows are short and the order of additions is fixed.
__global__ void divide_by_sum_kernel(const float* x, float* y, int64_t n_rows, int64_t n) {
    const int64_t row = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    if (row >= n_rows) return;
    float sum = 0.0f;
    for (int64_t i = 0; i < n; ++i) sum += x[row * n + i];
    const float divisor = sum < 1e-20f ? 1e-20f : sum;
    for (int64_t i = 0; i < n; ++i) y[row * n + i] = x[row * n + i] / divisor;
}

__global__ void copy_kernel(const int4* from, int4* to, int64_t n) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += step) to[i] = from[i];
}

/// Threads of a block that goes over a row of n values.
unsigned row_threads(int64_t n) {
    unsigned threads = kWarp;
    while (threads < 1024 && threads * 4 < n) threads *= 2;
    return threads;
}

}  // namespace

void add(const OpCall& call, const Launch& launch) {
    const float *a = call.in[0].as<const float>(), *b = call.in[1].as<const float>();
    const int64_t n = call.in[1].shape.n_elements();
    for_each(call, launch, [=] __device__(int64_t i) { return a[i] + b[i % n]; });
}

void mul(const OpCall& call, const Launch& launch) {
    const float *a = call.in[0].as<const float>(), *b = call.in[1].as<const float>();
    const int64_t n = call.in[1].shape.n_elements();
    for_each(call, launch, [=] __device__(int64_t i) { return a[i] * b[i % n]; });
}

void scale(const OpCall& call, const Launch& launch) {
    const float* x = call.in[0].as<const float>();
    const float factor = call.param<ScaleParams>().factor;
    for_each(call, launch, [=] __device__(int64_t i) { return factor * x[i]; });
}

void clamp(const OpCall& call, const Launch& launch) {
    const float* x = call.in[0].as<const float>();
    const float limit = call.param<ClampParams>().limit;
    for_each(call, launch, [=] __device__(int64_t i) { return x[i] > limit ? limit : x[i] < -limit ? -limit : x[i]; });
}

void sigmoid_gate(const OpCall& call, const Launch& launch) {
    const float *x = call.in[0].as<const float>(), *gate = call.in[1].as<const float>();
    const int64_t n = call.in[0].shape[1];
    for_each(call, launch, [=] __device__(int64_t i) { return sigmoid_exact(gate[i / n]) * x[i]; });
}

void slice(const OpCall& call, const Launch& launch) {
    const float* x = call.in[0].as<const float>() + call.param<SliceParams>().first;
    const int64_t n_x = call.in[0].shape[-1], n = call.out[0].shape[-1];
    for_each(call, launch, [=] __device__(int64_t i) { return x[i / n * n_x + i % n]; });
}

void concat(const OpCall& call, const Launch& launch) {
    const float *a = call.in[0].as<const float>(), *b = call.in[1].as<const float>();
    const int64_t n_a = call.in[0].shape[-1], n_b = call.in[1].shape[-1], n = n_a + n_b;
    for_each(call, launch, [=] __device__(int64_t i) {
        const int64_t row = i / n, at = i % n;
        return at < n_a ? a[row * n_a + at] : b[row * n_b + at - n_a];
    });
}

void swiglu(const OpCall& call, const Launch& launch) {
    const float *gate = call.in[0].as<const float>(), *up = call.in[1].as<const float>();
    const SwiGLUParams params = call.param<SwiGLUParams>();
    for_each(call, launch, [=] __device__(int64_t i) { return swiglu_exact(gate[i], up[i], params); });
}

void rms_norm(const OpCall& call, const Launch& launch) {
    const Shape& shape = call.in[0].shape;
    if (shape.n_elements() == 0) return;
    const float* weight = call.in.size() > 1 ? call.in[1].as<const float>() : nullptr;
    rms_norm_kernel<<<static_cast<unsigned>(shape.n_rows()), row_threads(shape[-1]), 0, launch.stream>>>(
        call.in[0].as<const float>(), weight, call.out[0].as<float>(), shape[-1], call.param<RmsNormParams>().eps);
}

void softmax(const OpCall& call, const Launch& launch) {
    const Shape& shape = call.in[0].shape;
    if (shape.n_elements() == 0) return;
    softmax_kernel<<<static_cast<unsigned>(shape.n_rows()), row_threads(shape[-1]), 0, launch.stream>>>(
        call.in[0].as<const float>(), call.out[0].as<float>(), shape[-1]);
}

void divide_by_sum(const OpCall& call, const Launch& launch) {
    const int64_t n_rows = call.in[0].shape.n_rows();
    if (n_rows == 0) return;
    divide_by_sum_kernel<<<static_cast<unsigned>(ceil_div(n_rows, kThreads)), kThreads, 0, launch.stream>>>(
        call.in[0].as<const float>(), call.out[0].as<float>(), n_rows, call.in[0].shape[-1]);
}

/// Small pieces by a kernel, which starts faster than a copy engine; both ends are 64-byte aligned in their arenas, and
/// whole int4s fit because arenas are laid out in 64 bytes.
void copy(const OpCall& call, const Launch& launch) {
    constexpr size_t kByKernel = 256 << 10;
    const TensorView& x = call.in[0];
    const auto size = static_cast<size_t>(storage_bytes(x.dtype, x.shape));
    if (size == 0) return;
    if (size > kByKernel || size % sizeof(int4) != 0) {
        cudaMemcpyAsync(call.out[0].data, x.data, size, cudaMemcpyDefault, launch.stream);
        return;
    }
    const auto n = static_cast<int64_t>(size / sizeof(int4));
    copy_kernel<<<static_cast<unsigned>(ceil_div(n, kThreads)), kThreads, 0, launch.stream>>>(
        reinterpret_cast<const int4*>(x.data), reinterpret_cast<int4*>(call.out[0].data), n);
}

}  // namespace ggmlx::cuda
