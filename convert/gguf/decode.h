#pragma once
// GGUF rows -> float32, with the operations in the order of the `gguf` package, so that values agree bit for bit.

#include <cstddef>
#include <cstdint>

#include "convert/gguf/types.h"

namespace convert {

/// One row of n values, whole blocks, at any address. The type must be one with a dtype (gguf_types.h).
void decode_gguf_row(const GgufTypeInfo& type, const std::byte* row, int64_t n, float* dst);

}  // namespace convert
