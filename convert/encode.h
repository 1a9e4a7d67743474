#pragma once
// Float rows in, stored bytes out, for one matrix, in chunks over several threads: what convert and quantize share.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>

#include "ggmlx/core/dtype.h"

namespace convert {

/// Fills dst with rows [first, first + n) as float32; called from several threads.
using ReadRows = std::function<void(int64_t first, int64_t n, float* dst)>;

/// Deviation of stored values from the float32 values they were made from, summed over chunks of any number of
/// matrices. Thread-safe.
class ErrorSum {
  public:
    void add(double rmse, double max_error, int64_t n_values);
    double rmse() const;
    double max_error() const { return max_error_; }

  private:
    std::mutex mutex_;
    double squares_ = 0, max_error_ = 0;
    int64_t n_values_ = 0;
};

/// One [n_out, n_in] matrix to be stored.
struct EncodeJob {
    std::string name;  ///< for messages: the source's name
    ggmlx::DType dtype = ggmlx::DType::F32;
    int64_t n_out = 0, n_in = 0;
    ReadRows read_rows;
    ErrorSum* error = nullptr;  ///< also measure, at the cost of decoding everything again
};

/// Fills dst, slice_bytes(dtype, {n_out, n_in}) bytes, using up to n_threads threads (0: all) and 8 MB per thread.
/// The result does not depend on the threads. Throws corrupt_file, naming tensor, row and column, for NaN, infinity and
/// for a value beyond the range of f16 where that type is asked for.
void encode_matrix(const EncodeJob& job, std::span<std::byte> dst, int n_threads);

}  // namespace convert
