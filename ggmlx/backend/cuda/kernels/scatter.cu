#include "ggmlx/backend/cuda/kernels/scatter.cuh"

namespace ggmlx::cuda {
namespace {

__global__ void scatter_kernel(const Piece* pieces) {
    const Piece piece = pieces[blockIdx.x];
    const auto* from = reinterpret_cast<const uint32_t*>(piece.from);
    auto* to = reinterpret_cast<uint32_t*>(piece.to);
    for (uint64_t i = threadIdx.x; i < piece.size_bytes / 4; i += blockDim.x) to[i] = from[i];
}

__global__ void read_kernel(const int4* data, int64_t n, uint32_t* sink) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    int sum = 0;
#pragma unroll 8
    for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += step) {
        const int4 v = __ldcs(data + i);
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 0x5bd1e995) *sink = 1;  // so that the loads stay
}

}  // namespace

void scatter(const Piece* pieces, int n_pieces, const Launch& launch) {
    if (n_pieces > 0) scatter_kernel<<<static_cast<unsigned>(n_pieces), 256, 0, launch.stream>>>(pieces);
}

void read_all(const std::byte* data, size_t size_bytes, uint32_t* sink, const Launch& launch) {
    read_kernel<<<static_cast<unsigned>(16 * launch.n_sm), 512, 0, launch.stream>>>(
        reinterpret_cast<const int4*>(data), static_cast<int64_t>(size_bytes / sizeof(int4)), sink);
}

}  // namespace ggmlx::cuda
