#include "convert/encode.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ggmlx/core/error.h"
#include "ggmlx/core/math.h"
#include "ggmlx/core/parallel.h"
#include "ggmlx/quant/quantize.h"

namespace convert {
namespace {

using ggmlx::DType;
using ggmlx::ErrorKind;

constexpr int64_t kChunkValues = 1 << 20;
/// From here on rounding to nearest gives infinity in f16.
constexpr float kF16Overflow = 65520.0f;

/// Rows of a chunk: whole tiles, so that every chunk has a place of its own in the result.
int64_t chunk_rows(int64_t n_in) {
    return ggmlx::round_up(std::max<int64_t>(1, kChunkValues / std::max<int64_t>(n_in, 1)), ggmlx::kTileRows);
}

void check_values(const EncodeJob& job, int64_t first_row, std::span<const float> values) {
    const float limit = job.dtype == DType::F16 ? kF16Overflow : INFINITY;
    const auto bad = std::find_if(values.begin(), values.end(), [limit](float v) { return !(std::fabs(v) < limit); });
    if (bad == values.end()) return;
    const int64_t at = bad - values.begin();
    ggmlx::fail(ErrorKind::CorruptFile, "tensor \"{}\" has the value {} in row {}, column {}{}", job.name, *bad,
                first_row + at / job.n_in, at % job.n_in,
                std::isfinite(*bad) ? ", which f16 cannot hold; use bf16 or another type" : "; weights must be finite");
}

}  // namespace

void ErrorSum::add(double rmse, double max_error, int64_t n_values) {
    std::lock_guard lock(mutex_);
    squares_ += rmse * rmse * static_cast<double>(n_values);
    max_error_ = std::max(max_error_, max_error);
    n_values_ += n_values;
}

double ErrorSum::rmse() const { return n_values_ > 0 ? std::sqrt(squares_ / static_cast<double>(n_values_)) : 0.0; }

void encode_matrix(const EncodeJob& job, std::span<std::byte> dst, int n_threads) {
    const int64_t rows = chunk_rows(job.n_in);
    ggmlx::parallel_for(ggmlx::ceil_div(job.n_out, rows), n_threads, [&](int64_t chunk) {
        const int64_t first = chunk * rows, n = std::min(rows, job.n_out - first);
        std::vector<float> values(static_cast<size_t>(n * job.n_in));
        job.read_rows(first, n, values.data());
        check_values(job, first, values);
        auto bytes = [&](int64_t n_rows) {
            return static_cast<size_t>(n_rows ? ggmlx::slice_bytes(job.dtype, {n_rows, job.n_in}) : 0);
        };
        const auto part = dst.subspan(bytes(first), bytes(n));
        ggmlx::quantize_matrix(job.dtype, values.data(), n, job.n_in, part);
        if (job.error) {
            const auto e = ggmlx::round_trip_error(job.dtype, values.data(), part, n, job.n_in);
            job.error->add(e.rmse, e.max_error, n * job.n_in);
        }
    });
}

}  // namespace convert
