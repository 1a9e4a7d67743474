#pragma once
// Matrices in their stored form: reading a row, and multiplying with activations in the order of reference.h.

#include <cstddef>
#include <cstdint>

#include "ggmlx/graph/call.h"

namespace ggmlx::reference {

/// A [n_out, n_in] matrix of any weight dtype as a file or a device holds it: rows, or tiles of 16 rows.
struct StoredMatrix {
    const std::byte* data;
    DType dtype;
    int64_t n_out, n_in;
};

/// Where rows that cannot be quantized are reported: activation row i is row first_row + i of the op.
struct RowFaults {
    CallStatus* status;
    int64_t first_row = 0;
};

/// Row `row` as n_in values of float32.
void decode_row(const StoredMatrix& m, int64_t row, float* dst);

/// y[i][r] = m[r] · x[i].  x: [n_rows, n_in];  y: [n_rows, n_out].
void multiply(const StoredMatrix& m, const float* x, int64_t n_rows, float* y, RowFaults faults);

}  // namespace ggmlx::reference
