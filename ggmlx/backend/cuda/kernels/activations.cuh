#pragma once
// Activations as int8 per 32 values (quant/activation.h), laid out for the dot products of decode.cuh.
//
// Columns (activation rows) lie in groups of `width` (8 for products of several columns, 1 for single ones). Of a group
// all K blocks follow each other; a block is width x 32 bytes: [column][g 0..3][half][4], so that a thread gets word g
// of both halves, or all words of a column, in one load. Their scales and sums are in a second array [group][block]
// [column]. Columns that fill up a group are zeros.

#include "ggmlx/backend/cuda/kernels/decode.cuh"

namespace ggmlx::cuda {

struct Activations {
    int8_t* q = nullptr;
    ActivationMeta* meta = nullptr;
    int64_t n_blocks = 0;  ///< of 32 values in a column
    int width = 1;         ///< columns of a group

    __host__ __device__ int64_t block_index(int64_t group, int64_t block) const { return group * n_blocks + block; }
};

inline constexpr int kGroupWidth = 8;

/// Where the rows that become columns come from.
struct ColumnSource {
    const float* x = nullptr;
    int64_t n_in = 0;
    int64_t n_columns = 0;          ///< real ones of a set
    int64_t n_groups = 0;           ///< of all sets
    int64_t n_sets = 1;             ///< > 1: one set of groups per head; column c of set h reads row c * n_sets + h
    const int32_t* rows = nullptr;  ///< column c reads row rows[c] / row_divisor, -1: zeros; null: see n_sets
    int64_t row_divisor = 1;
    int64_t report_divisor = 1;  ///< a fault is reported for row / report_divisor, rows as rows[] has them
    const float* up = nullptr;   ///< given: x is a gate, and the columns are swiglu(x, up)
    SwiGLUParams activation{};
};

/// Arrays within an op's scratch begin at multiples of this.
inline constexpr int64_t kScratchAlignment = 256;
constexpr int64_t align_scratch(int64_t n) { return round_up(n, kScratchAlignment); }

size_t activation_bytes(int64_t n_groups, int width, int64_t n_in);
/// The arrays within `memory` of activation_bytes.
Activations place_activations(std::byte* memory, int64_t n_groups, int width, int64_t n_in);

/// Fills `a`; rows that cannot be quantized are reported and give NaN scales.
void quantize_columns(const ColumnSource& source, const Activations& a, bool interleaved, StatusWord* status,
                      const Launch& launch);

/// Whether products with this type read MXFP4's order.
inline bool is_interleaved(DType dtype) { return dtype == DType::MXFP4; }
/// Whether the type's products quantize activations.
inline bool has_integer_products(DType dtype) {
    return dtype == DType::Q8_0 || dtype == DType::Q4_0 || dtype == DType::Q4_1 || dtype == DType::Q4_K ||
           dtype == DType::Q6_K || dtype == DType::MXFP4;
}

}  // namespace ggmlx::cuda
