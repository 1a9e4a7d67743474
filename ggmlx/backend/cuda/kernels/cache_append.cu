// Rows into a cache, in its type.

#include "ggmlx/backend/cuda/kernels/convert.cuh"
#include "ggmlx/backend/cuda/ops.h"

namespace ggmlx::cuda {
namespace {

/// A warp's 32 values (zero beyond the row) as one block of a q8_0 row, as reference.h says.
__device__ void store_block(float x, bool in_row, RowQ8_0& block) {
    const float amax = warp_max(in_row ? fabsf(x) : 0.0f);
    const bool finite = __all_sync(kAllLanes, !in_row || isfinite(x));
    const uint16_t bits = finite ? float_to_f16_bits(fminf(amax / 127.0f, 65504.0f)) : uint16_t{0x7e00};
    const float d = f16_bits_to_float(bits);
    int q = 0;
    if (finite && d > 0.0f && in_row) {
        const float scaled = x * (1.0f / d);
        q = __float2int_rn(scaled > 127.0f ? 127.0f : scaled < -127.0f ? -127.0f : scaled);
    }
    block.q[threadIdx.x % kWarp] = static_cast<int8_t>(q);
    if (threadIdx.x % kWarp == 0) block.d = bits;
}

/// One block per head of a token, threads in whole warps over the row.
template <DType kType>
__global__ void append_kernel(std::byte* cache, int64_t row_bytes, int64_t n_slots, int64_t block_len, const float* x,
                              const int32_t* slots, int n_head, int64_t head_dim, StatusWord* status) {
    const int64_t t = blockIdx.x / n_head, head = blockIdx.x % n_head, slot = slots[t];
    if (slot == -1) return;
    if (slot < 0 || slot >= n_slots) {
        if (threadIdx.x == 0 && head == 0) report(status, Fault::BadIndex, t);
        return;
    }
    std::byte* row = cache + ((slot / block_len * n_head + head) * block_len + slot % block_len) * row_bytes;
    x += (t * n_head + head) * head_dim;
    for (int64_t d = threadIdx.x; d < (head_dim + 31) / 32 * 32; d += blockDim.x) {
        const bool in_row = d < head_dim;
        const float v = in_row ? x[d] : 0.0f;
        if constexpr (kType == DType::Q8_0) {
            store_block(v, in_row, reinterpret_cast<RowQ8_0*>(row)[d / 32]);
            continue;
        }
        if (!in_row) continue;
        if constexpr (kType == DType::F32) reinterpret_cast<float*>(row)[d] = v;
        if constexpr (kType == DType::F16) reinterpret_cast<uint16_t*>(row)[d] = float_to_f16_bits(v);
        if constexpr (kType == DType::BF16) reinterpret_cast<uint16_t*>(row)[d] = float_to_bf16_bits(v);
        if constexpr (kType == DType::F8_E4M3) reinterpret_cast<uint8_t*>(row)[d] = float_to_e4m3(v);
    }
}

}  // namespace

void cache_append(const OpCall& call, const Launch& launch) {
    const TensorView &cache = call.out[0], &x = call.in[1];
    if (x.shape.n_elements() == 0) return;
    const auto n_head = static_cast<int>(x.shape[1]);
    with_cache_type(cache.dtype, [&]<DType kType>(CacheType<kType>) {
        append_kernel<kType><<<static_cast<unsigned>(x.shape[0] * n_head), 128, 0, launch.stream>>>(
            cache.data, cache_row_bytes(cache.dtype, cache.shape[3]), cache.shape[0] * cache.shape[2], cache.shape[2],
            x.as<const float>(), call.in[2].as<const int32_t>(), n_head, x.shape[2], status_word(call));
    });
}

}  // namespace ggmlx::cuda
