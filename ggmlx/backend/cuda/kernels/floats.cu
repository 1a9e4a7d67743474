// Products of many columns of types without integer products: a tile of 64 rows and 64 columns per block, both staged
// in shared memory as float32, each thread with 4 x 4 results. Sums run over k in increasing order.

#include "ggmlx/backend/cuda/kernels/products.cuh"
#include "ggmlx/backend/cuda/kernels/tables.cuh"

namespace ggmlx::cuda {
namespace {

constexpr int kSide = 64, kDepth = 16, kThreads = 256, kPadded = kSide + 4;

template <class Table>
__global__ void __launch_bounds__(kThreads) floats_kernel(Table table, FloatColumns args) {
    __shared__ alignas(16) float w[kDepth][kPadded], x[kDepth][kPadded];
    const int64_t first_row = blockIdx.x * static_cast<int64_t>(kSide),
                  first_column = blockIdx.y * static_cast<int64_t>(kSide);
    const int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
    float sums[4][4] = {};
    for (int64_t k0 = 0; k0 < args.n_in; k0 += kDepth) {
        for (int i = threadIdx.x; i < kSide * kDepth; i += kThreads) {
            const int at = i / kDepth, d = i % kDepth;
            const int64_t k = k0 + d, r = first_row + at, c = first_column + at;
            w[d][at] = k < args.n_in && r < args.n_out ? table.value(r, k) : 0.0f;
            x[d][at] = k < args.n_in && c < args.n_columns ? args.x[c * args.x_stride + k] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < kDepth; ++d) {
            const float4 a = *reinterpret_cast<const float4*>(&w[d][row]);
            const float4 b = *reinterpret_cast<const float4*>(&x[d][column]);
            const float as[4] = {a.x, a.y, a.z, a.w}, bs[4] = {b.x, b.y, b.z, b.w};
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sums[i][j] = __fmaf_rn(as[i], bs[j], sums[i][j]);
        }
        __syncthreads();
    }
    for (int j = 0; j < 4; ++j)
        for (int i = 0; i < 4; ++i)
            if (first_row + row + i < args.n_out && first_column + column + j < args.n_columns)
                args.y[(first_column + column + j) * args.y_stride + first_row + row + i] = sums[i][j];
}

}  // namespace

void multiply_floats(const std::byte* weight, DType dtype, const FloatColumns& args, const Launch& launch) {
    const dim3 grid(static_cast<unsigned>(ceil_div(args.n_out, kSide)),
                    static_cast<unsigned>(ceil_div(args.n_columns, kSide)));
    with_table(weight, dtype, args.n_in,
               [&](auto table) { floats_kernel<<<grid, kThreads, 0, launch.stream>>>(table, args); });
}

}  // namespace ggmlx::cuda
