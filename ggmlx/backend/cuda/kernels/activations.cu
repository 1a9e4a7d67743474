#include "ggmlx/backend/cuda/kernels/activations.cuh"

namespace ggmlx::cuda {
namespace {

/// One warp per block of 32 values of one column.
__global__ void quantize_kernel(ColumnSource source, Activations a, bool interleaved, StatusWord* status) {
    const int64_t item = blockIdx.x * static_cast<int64_t>(blockDim.x / kWarp) + threadIdx.x / kWarp;
    const int64_t block = item % a.n_blocks, column = item / a.n_blocks;
    const int64_t n_set_columns = source.n_groups / source.n_sets * a.width;
    if (column >= source.n_groups * a.width) return;
    const int64_t set = column / n_set_columns, of_set = column % n_set_columns;
    const int64_t named = source.rows ? source.rows[of_set] : of_set * source.n_sets + set;
    const int64_t row = of_set < source.n_columns ? named : -1;
    const int k = threadIdx.x % kWarp;
    const int64_t at = block * 32 + k, from = row / source.row_divisor * source.n_in + at;
    float x = 0.0f;
    if (row >= 0 && at < source.n_in)
        x = source.up ? swiglu_exact(source.x[from], source.up[from], source.activation) : source.x[from];
    const float amax = warp_max(fabsf(x));
    const bool finite = __all_sync(kAllLanes, isfinite(x));
    const bool is_zero = !finite || amax < 1e-30f;
    const int q = is_zero ? 0 : __float2int_rn(x * (127.0f / amax));
    int low = k < 16 ? q : 0, high = k < 16 ? 0 : q;
    for (int step = kWarp / 2; step > 0; step /= 2) {
        low += __shfl_xor_sync(kAllLanes, low, step);
        high += __shfl_xor_sync(kAllLanes, high, step);
    }
    const int64_t group = column / a.width, in_group = column % a.width;
    const int64_t index = a.block_index(group, block);
    const int kh = k & 15, g = kh >> 2, j = kh & 3;
    const int half = interleaved ? j >> 1 : k >> 4;
    const int byte = interleaved ? 2 * (j & 1) + (k >> 4) : j;
    a.q[(index * a.width + in_group) * 32 + g * 8 + half * 4 + byte] = static_cast<int8_t>(q);
    if (k != 0) return;
    const float scale = finite ? (is_zero ? 0.0f : amax / 127.0f) : NAN;
    a.meta[index * a.width + in_group] = {scale, static_cast<int16_t>(low), static_cast<int16_t>(high)};
    if (!finite) report(status, Fault::NonFinite, row / source.report_divisor);
}

}  // namespace

size_t activation_bytes(int64_t n_groups, int width, int64_t n_in) {
    const int64_t n = n_groups * width * ceil_div(n_in, 32);
    return static_cast<size_t>(align_scratch(n * 32) + align_scratch(n * static_cast<int64_t>(sizeof(ActivationMeta))));
}

Activations place_activations(std::byte* memory, int64_t n_groups, int width, int64_t n_in) {
    const int64_t n_blocks = ceil_div(n_in, 32);
    auto* meta = memory + align_scratch(n_groups * width * n_blocks * 32);
    return {reinterpret_cast<int8_t*>(memory), reinterpret_cast<ActivationMeta*>(meta), n_blocks, width};
}

void quantize_columns(const ColumnSource& source, const Activations& a, bool interleaved, StatusWord* status,
                      const Launch& launch) {
    constexpr int kThreads = 256;
    const int64_t n_warps = source.n_groups * a.width * a.n_blocks;
    const auto n_blocks = static_cast<unsigned>(ceil_div(n_warps, kThreads / kWarp));
    quantize_kernel<<<n_blocks, kThreads, 0, launch.stream>>>(source, a, interleaved, status);
}

}  // namespace ggmlx::cuda
