#pragma once
// Values of plain types to and from float32.

#include <cstddef>
#include <cstdint>

#include "ggmlx/core/dtype.h"

namespace ggmlx::reference {

/// n values of f32, f16, bf16 or f8_e4m3 at src as float32, exactly.
void load_floats(DType dtype, const std::byte* src, int64_t n, float* dst);
/// The inverse, rounded to nearest even.
void store_floats(DType dtype, const float* src, int64_t n, std::byte* dst);

/// A cache row of n values (core/dtype.h): plain values as above, q8_0 as RowQ8_0 blocks with the scale and codes that
/// quantize_matrix gives. A q8_0 block with a value that is NaN or infinite is NaN throughout.
void load_cache_row(DType dtype, const std::byte* row, int64_t n, float* dst);
void store_cache_row(DType dtype, const float* src, int64_t n, std::byte* row);

}  // namespace ggmlx::reference
