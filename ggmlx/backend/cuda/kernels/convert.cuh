#pragma once
// Values of plain types and of cache rows, read and written with the bits of reference/convert.h.

#include "ggmlx/backend/cuda/kernels/math.cuh"
#include "ggmlx/quant/tiles.h"

namespace ggmlx::cuda {

/// A NaN keeps its sign and upper payload and becomes quiet, as core/float_types.h has it.
__device__ inline uint16_t float_to_f16_bits(float f) {
    if (!isnan(f)) return __half_as_ushort(__float2half_rn(f));
    const uint32_t u = __float_as_uint(f);
    return static_cast<uint16_t>(((u >> 16) & 0x8000u) | 0x7e00u | ((u >> 13) & 0x1ffu));
}
__device__ inline uint16_t float_to_bf16_bits(float f) {
    const uint32_t u = __float_as_uint(f);
    if (isnan(f)) return static_cast<uint16_t>((u >> 16) | 0x0040u);
    return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
/// Beyond ±448, infinities included, it is ±448.
__device__ inline uint8_t float_to_e4m3(float f) {
    const auto sign = static_cast<uint8_t>((__float_as_uint(f) >> 24) & 0x80u);
    if (isnan(f)) return sign | 0x7fu;
    return static_cast<uint8_t>(sign | __nv_cvt_float_to_fp8(fabsf(f), __NV_SATFINITE, __NV_E4M3));
}

/// Types of a cache as tags for templates.
template <DType kType>
struct CacheType {
    static constexpr DType kDType = kType;
};

/// Value d of a cache row.
template <DType kType>
__device__ inline float load_cache_value(const std::byte* row, int64_t d) {
    if constexpr (kType == DType::F32) return reinterpret_cast<const float*>(row)[d];
    if constexpr (kType == DType::F16) return f16_bits_to_float(reinterpret_cast<const uint16_t*>(row)[d]);
    if constexpr (kType == DType::BF16) return bf16_bits_to_float(reinterpret_cast<const uint16_t*>(row)[d]);
    if constexpr (kType == DType::F8_E4M3) return e4m3_to_float(reinterpret_cast<const uint8_t*>(row)[d]);
    if constexpr (kType == DType::Q8_0) {
        const RowQ8_0& block = reinterpret_cast<const RowQ8_0*>(row)[d / 32];
        return f16_bits_to_float(block.d) * static_cast<float>(block.q[d % 32]);
    }
}

/// Calls f(CacheType<…>{}) for a cache's dtype.
template <class F>
void with_cache_type(DType dtype, F f) {
    switch (dtype) {
        case DType::F32:
            return f(CacheType<DType::F32>{});
        case DType::F16:
            return f(CacheType<DType::F16>{});
        case DType::BF16:
            return f(CacheType<DType::BF16>{});
        case DType::F8_E4M3:
            return f(CacheType<DType::F8_E4M3>{});
        case DType::Q8_0:
            return f(CacheType<DType::Q8_0>{});
        default:
            return;  // supports() lets nothing else through
    }
}

}  // namespace ggmlx::cuda
