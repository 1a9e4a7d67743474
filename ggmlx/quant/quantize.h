#pragma once
// float32 rows -> stored tensor data and back. Rounding is chosen to minimise the squared error; the result depends on
// the values alone, never on threads. convert/ and `ggmlx quantize` call this same code.

#include <cstddef>
#include <cstdint>
#include <span>

#include "ggmlx/core/dtype.h"

namespace ggmlx {

/// The type a [.., n_out, n_in] tensor gets when `wanted` is asked for: `wanted`, or its fallback where n_in is no
/// multiple of a 256-value block (q4_k -> q4_1, q6_k -> q8_0).
DType storable_type(DType wanted, int64_t n_in);

/// Quantizes one [n_out, n_in] matrix, row-major float32, into its stored form (tiles for block types, padding zero).
/// dst has slice_bytes(dtype, {n_out, n_in}) bytes. Work is cut by row tiles over up to n_threads threads (0: all
/// usable). Throws invalid_argument if dtype is I32 or the sizes do not fit, and when a value is NaN or infinite and
/// the type cannot hold it (every block type; the message gives row and column).
void quantize_matrix(DType dtype, const float* src, int64_t n_out, int64_t n_in, std::span<std::byte> dst,
                     int n_threads = 1);

/// The inverse: rows [first_row, first_row + n_rows) of a stored [n_out, n_in] matrix as row-major float32 into dst.
/// Any dtype but I32. src must hold slice_bytes(dtype, {n_out, n_in}) bytes.
void dequantize_rows(DType dtype, std::span<const std::byte> src, int64_t n_out, int64_t n_in, int64_t first_row,
                     int64_t n_rows, float* dst);

/// What a type costs on given data.
struct RoundTripError {
    double rmse = 0;
    double max_error = 0;
    double bits_per_weight = 0;  ///< stored bytes * 8 / values, padding included
};
/// Error of the stored form against the original float32 matrix.
RoundTripError round_trip_error(DType dtype, const float* original, std::span<const std::byte> stored, int64_t n_out,
                                int64_t n_in);

}  // namespace ggmlx
