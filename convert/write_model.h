#pragma once
// Writes a model from recipes for single slices: the loop that convert and quantize share. One slice is in memory at a
// time.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "convert/encode.h"
#include "convert/report.h"
#include "ggmlx/file/writer.h"

namespace convert {

struct TensorPlan {
    ggmlx::TensorToWrite target;
    /// Fills dst with one slice (see slice_shape), matrix after matrix; error is null unless deviations are wanted.
    /// Slices are asked for in order, each once.
    std::function<void(int64_t slice, std::span<std::byte> dst, ErrorSum* error)> produce;
};

/// How a tensor is cut: slices are written one by one, each of one or several [n_out, n_in] matrices. Only stacked
/// experts have several slices; a vector is one row.
struct SliceShape {
    int64_t n_slices = 1, n_matrices = 1;
    int64_t n_out = 1, n_in = 1;
};
/// Part i of n equal ones.
template <class Bytes>
Bytes nth(Bytes bytes, int64_t i, int64_t n) {
    const size_t size = bytes.size() / static_cast<size_t>(n);
    return bytes.subspan(static_cast<size_t>(i) * size, size);
}
SliceShape slice_shape(ggmlx::Role role, const ggmlx::Shape& shape);

struct WriteOptions {
    std::string output;
    bool compress = false;
    bool measure_errors = false;  ///< fill rmse and max_error of the report
    bool dry_run = false;         ///< only fill file_bytes of the report
};

/// Throws invalid_argument if the output is one of the inputs (also by another name) or a folder.
void require_separate_output(const std::string& output, std::span<const std::string> inputs);

/// Bits per weight and totals for the report, which has one TensorReport per plan.
void fill_sizes(const std::vector<TensorPlan>& plans, Report& report);

/// Writes and publishes the file, after fill_sizes. Whatever is thrown, nothing new is left under the output's name.
void write_model(const WriteOptions& options, std::vector<ggmlx::DocumentToWrite> documents,
                 const std::vector<TensorPlan>& plans, Report& report, const ProgressSink& progress);

}  // namespace convert
