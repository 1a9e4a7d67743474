// Rows of a table of any weight type as float32, for embeddings.

#include "ggmlx/backend/cuda/kernels/tables.cuh"
#include "ggmlx/backend/cuda/ops.h"

namespace ggmlx::cuda {
namespace {

template <class Table>
__global__ void get_rows_kernel(Table table, int64_t n_rows, int64_t n_in, const int32_t* ids, float* y,
                                StatusWord* status) {
    const int32_t id = ids[blockIdx.x];
    const bool is_row = id >= 0 && id < n_rows;
    if (!is_row && id != -1 && threadIdx.x == 0 && blockIdx.y == 0) report(status, Fault::BadIndex, blockIdx.x);
    for (int64_t k = blockIdx.y * static_cast<int64_t>(blockDim.x) + threadIdx.x; k < n_in;
         k += static_cast<int64_t>(gridDim.y) * blockDim.x)
        y[blockIdx.x * n_in + k] = is_row ? table.value(id, k) : 0.0f;
}

}  // namespace

void get_rows(const OpCall& call, const Launch& launch) {
    const TensorView& w = call.in[0];
    const int64_t n_in = w.shape[1], n = call.in[1].shape[0];
    if (n == 0 || n_in == 0) return;
    constexpr int kThreads = 256;
    const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(ceil_div(n_in, 4 * kThreads)));
    with_table(w.data, w.dtype, n_in, [&](auto table) {
        get_rows_kernel<<<grid, kThreads, 0, launch.stream>>>(table, w.shape[0], n_in, call.in[1].as<const int32_t>(),
                                                              call.out[0].as<float>(), status_word(call));
    });
}

}  // namespace ggmlx::cuda
