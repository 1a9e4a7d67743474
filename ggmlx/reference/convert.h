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

}  // namespace ggmlx::reference
