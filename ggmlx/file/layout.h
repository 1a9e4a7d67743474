#pragma once
// The rules of the format that reader and writer share: where the bytes of a tensor lie, which names and sizes are
// allowed.

#include <cstdint>
#include <string_view>

#include "ggmlx/core/tensor.h"

namespace ggmlx {

/// A tensor's data is n_slices slices of slice_bytes each (an expert, or everything), the starts `stride` bytes apart.
struct DataLayout {
    uint64_t n_slices = 1;
    uint64_t slice_bytes = 0;
    uint64_t stride = 0;         ///< equals slice_bytes if there are no gaps
    uint64_t expert_stride = 0;  ///< as the index stores it: 0 unless the role is Expert
    uint64_t raw_bytes = 0;      ///< from the first byte of the first slice to the last of the last
    uint64_t alignment = 0;      ///< of the first byte in the file
};

/// Stacked experts [n_expert, n_out, n_in] have a slice each; every other tensor is one slice. Experts' biases
/// [n_expert, n] have an expert stride too, of one row. Throws invalid_argument, naming the tensor, for a rank that is
/// not 1 to 4, an extent of 0, a size beyond 2^62 bytes, a Role::Cache, a block type without a matrix or with a row
/// length it cannot store, and for experts of rank 4, of rank 2 in a block type, or more than 65536.
DataLayout data_layout(std::string_view tensor_name, DType dtype, Role role, const Shape& shape, bool compressed);

/// Whether a tensor or document may be called so: 1 to 1024 bytes of UTF-8 without control characters.
bool is_valid_name(std::string_view name);

/// Documents are plain file names besides: no slash, not "." or "..".
bool is_valid_document_name(std::string_view name);

/// Whether a frame of stored_bytes may be said to hold a document of raw_bytes: the limits of format.h.
/// stored_bytes: at most the size of a file.
bool is_sane_document_size(uint64_t raw_bytes, uint64_t stored_bytes);

}  // namespace ggmlx
