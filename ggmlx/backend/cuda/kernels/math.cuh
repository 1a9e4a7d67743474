#pragma once
// What every kernel may need: the project's exponential (reference/exp.h) with the same bits, conversions, sums over a
// warp or a block, and the report of a fault.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "ggmlx/backend/cuda/call_args.h"
#include "ggmlx/reference/exp.h"

namespace ggmlx::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

/// exp_poly of reference/exp.h, operation by operation.
__device__ inline float exp_exact(float x) {
    if (isnan(x)) return x;
    if (x > kExpMax) return INFINITY;
    if (x < kExpMin) return 0.0f;
    const float n = rintf(x * kExpLog2e);
    float r = __fmaf_rn(-n, kExpLn2High, x);
    r = __fmaf_rn(-n, kExpLn2Low, r);
    float p = __fmaf_rn(kExpC6, r, kExpC5);
    p = __fmaf_rn(p, r, kExpC4);
    p = __fmaf_rn(p, r, kExpC3);
    p = __fmaf_rn(p, r, kExpC2);
    p = __fmaf_rn(p, r, 1.0f);
    p = __fmaf_rn(p, r, 1.0f);
    return __int_as_float(__float_as_int(p) + (static_cast<int>(n) << 23));
}

__device__ inline float sigmoid_exact(float x) { return 1.0f / (1.0f + exp_exact(-x)); }

/// swiglu_value of the reference.
__device__ inline float swiglu_exact(float gate, float up, SwiGLUParams params) {
    if (params.clamp > 0.0f) {
        gate = gate > params.clamp ? params.clamp : gate;
        up = up < -params.clamp ? -params.clamp : up;
        up = up > params.clamp ? params.clamp : up;
    }
    return gate / (1.0f + exp_exact(-(params.alpha * gate))) * (up + params.up_offset);
}

__device__ inline float f16_bits_to_float(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
__device__ inline float bf16_bits_to_float(uint16_t bits) { return __uint_as_float(static_cast<uint32_t>(bits) << 16); }
/// 2^(e - 127); 0 means 2^-127. 255 does not occur.
__device__ inline float e8m0_to_float(uint32_t e) { return __uint_as_float(e ? e << 23 : 0x00400000u); }
/// Half of it.
__device__ inline float half_e8m0_to_float(uint32_t e) {
    return __uint_as_float(e > 1 ? (e - 1) << 23 : 0x00200000u << e);
}
/// E4M3 without infinity; 0x7f and 0xff are NaN.
__device__ inline float e4m3_to_float(uint8_t code) { return __half2float(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)); }

__device__ inline float warp_sum(float v) {
    for (int step = kWarp / 2; step > 0; step /= 2) v += __shfl_xor_sync(kAllLanes, v, step);
    return v;
}
__device__ inline float warp_max(float v) {
    for (int step = kWarp / 2; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(kAllLanes, v, step));
    return v;
}
/// The sum over a block of at most 1024 threads, for all of them. Each use needs its own `shared`[32].
__device__ inline float block_sum(float v, float* shared) {
    v = warp_sum(v);
    if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = v;
    __syncthreads();
    const auto n_warps = (blockDim.x + kWarp - 1) / kWarp;
    return warp_sum(threadIdx.x % kWarp < n_warps ? shared[threadIdx.x % kWarp] : 0.0f);
}
/// NaN is passed over.
__device__ inline float block_max(float v, float* shared) {
    v = warp_max(v);
    if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = v;
    __syncthreads();
    const auto n_warps = (blockDim.x + kWarp - 1) / kWarp;
    return warp_max(threadIdx.x % kWarp < n_warps ? shared[threadIdx.x % kWarp] : -INFINITY);
}

/// CallStatus::report: the first report of a call wins. The word may be in host memory.
__device__ inline void report(StatusWord* status, Fault fault, int64_t row) {
    const auto word = (static_cast<unsigned long long>(row) << 8) | static_cast<unsigned long long>(fault);
    atomicCAS_system(status, 0ull, word);
}

}  // namespace ggmlx::cuda
