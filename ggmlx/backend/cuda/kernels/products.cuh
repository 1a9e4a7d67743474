#pragma once
// Products of matrices with activations: one matrix or a stack of them (heads, experts). Two kernels: for few columns
// (gemv.cu: reads every weight once at the memory's rate) and for many (gemm.cu: tensor cores). Both add in the order
// of reference.h, so integer types give the reference's bits.

#include "ggmlx/backend/cuda/kernels/activations.cuh"

namespace ggmlx::cuda {

/// Matrices of one type and shape, `stride` bytes from each other. Which one a product takes: its own index, or for
/// experts slots[ids[index]], where a negative slot means that the result is zero.
struct MatrixStack {
    const std::byte* data = nullptr;
    DType dtype = DType::F32;
    int64_t n_out = 0, n_in = 0;
    int64_t stride = 0;
    int64_t n_slots = 1;
    const int32_t* ids = nullptr;
    const int32_t* slots = nullptr;
    int64_t n_expert = 0;
    const float* bias = nullptr;  ///< [n_slots] rows, added to the result
    int64_t bias_stride = 0;      ///< in floats
    StatusWord* status = nullptr;
    int64_t row_divisor = 1;  ///< a bad id of product i is reported for row i / row_divisor
};

/// The slot of expert `id`; -1 if there is none or the id is -1. What lies outside its table is reported.
__device__ inline int64_t find_slot(const MatrixStack& m, int64_t product) {
    if (!m.ids) return product;
    const int32_t id = m.ids[product];
    if (id == -1) return -1;
    const bool is_expert = id >= 0 && id < m.n_expert;
    const int32_t slot = is_expert ? m.slots[id] : -1;
    if (is_expert && slot >= -1 && slot < m.n_slots) return slot;
    if (threadIdx.x == 0) report(m.status, Fault::BadIndex, product / m.row_divisor);
    return -1;
}

/// At most 8 columns for each of n_products matrices.
struct FewColumns {
    MatrixStack m;
    int64_t first_product = 0, n_products = 1;
    int n_columns = 1;
    Activations a;             ///< integer types: product i reads group i / x_divisor
    const float* x = nullptr;  ///< others: its column c is x + (i / x_divisor) * x_stride + c * x_column_stride
    int64_t x_stride = 0, x_column_stride = 0;
    int64_t x_divisor = 1;
    float* y = nullptr;  ///< column c of product i is y + i * y_stride + c * y_column_stride
    int64_t y_stride = 0, y_column_stride = 0;
};
void multiply_few(const FewColumns& args, const Launch& launch);

/// Which groups of columns belong to which matrix: what one thread block of multiply_many works on.
struct Chunk {
    int32_t slot, first_group, n_groups;
};
/// Most groups of a chunk: many where each weight serves many columns, fewer where that leaves the device idle.
inline constexpr int kChunkGroups = 8, kSmallChunkGroups = 4;

/// Any number of columns, integer types only.
struct ManyColumns {
    MatrixStack m;
    Activations a;                      ///< of width kGroupWidth
    int chunk_groups = kChunkGroups;    ///< kChunkGroups or kSmallChunkGroups
    const Chunk* chunks = nullptr;      ///< null: matrix 0 and n_groups groups
    const int32_t* n_chunks = nullptr;  ///< on the device
    int64_t max_chunks = 0;
    int64_t n_groups = 0;                 ///< without chunks
    const int32_t* column_row = nullptr;  ///< the row of y of a column, -1: none; null: the same number
    int64_t n_columns = 0;                ///< real columns, without column_row
    float* y = nullptr;
    int64_t y_stride = 0;
};
void multiply_many(const ManyColumns& args, const Launch& launch);

/// Any number of columns of one matrix, types without integer products. Column c is x + c * x_stride.
struct FloatColumns {
    int64_t n_out = 0, n_in = 0, n_columns = 0;
    const float* x = nullptr;
    int64_t x_stride = 0;
    float* y = nullptr;
    int64_t y_stride = 0;
};
void multiply_floats(const std::byte* weight, DType dtype, const FloatColumns& args, const Launch& launch);

/// Most columns that multiply_few is meant for.
inline constexpr int64_t kFewColumns = 8;

}  // namespace ggmlx::cuda
