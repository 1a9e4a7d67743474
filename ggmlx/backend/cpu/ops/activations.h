#pragma once
// The rows of x in the form that a weight type's matmul kernel reads: int8 blocks, padded floats, or x itself.

#include "ggmlx/backend/cpu/ops/ops.h"
#include "ggmlx/core/math.h"

namespace ggmlx::cpu {

inline constexpr int64_t kBlock = 32;

/// Rows as a kernel's columns want them.
struct ActivationRows {
    const std::byte* data;
    int64_t row_bytes;
    const void* row(int64_t i) const { return data + i * row_bytes; }
};

/// Rows of n activations for weights of one dtype.
class ActivationForm {
  public:
    ActivationForm(DType weight, int64_t n)
        : int8_(is_block(weight) && weight != DType::MXFP8),
          padded_(weight == DType::MXFP8 && n % kBlock != 0),
          n_(n) {}

    bool operator==(const ActivationForm&) const = default;
    /// False: the kernel reads x as it is, row_bytes() is 0.
    bool is_converted() const { return int8_ || padded_; }
    int64_t n() const { return n_; }
    int64_t n_blocks() const { return ceil_div(n_, kBlock); }
    /// Of a converted row; 0 if rows are not converted.
    int64_t row_bytes() const {
        if (int8_) return n_blocks() * static_cast<int64_t>(sizeof(ActivationBlock));
        return padded_ ? n_blocks() * kBlock * static_cast<int64_t>(sizeof(float)) : 0;
    }
    /// The converted rows, or x itself.
    ActivationRows rows(const float* x, const std::byte* converted) const {
        if (is_converted()) return {converted, row_bytes()};
        return {reinterpret_cast<const std::byte*>(x), n_ * static_cast<int64_t>(sizeof(float))};
    }
    /// Converts blocks [begin, end) of a row; a value that is not finite is reported for `row`.
    void convert(const float* x, int64_t begin, int64_t end, std::byte* dst, const CpuKernels& kernels,
                 CallStatus& status, int64_t row) const noexcept;

  private:
    bool int8_, padded_;
    int64_t n_;
};

/// Converts the rows of x [n_rows, n] to dst, n_rows · row_bytes() bytes, as far as anything is to be done.
/// rows_per_token: how many rows of x a reported token has.
void convert_rows(const ActivationForm& form, const float* x, int64_t n_rows, std::byte* dst, const OpCall& call,
                  Worker& worker, int64_t rows_per_token = 1) noexcept;

/// Multiplies row tiles [begin, end) with n columns, which column(i) gives as a Column.
template <class F>
void multiply_tiles(const CpuKernels& kernels, DType dtype, const MatmulArgs& args, int64_t n, int64_t begin,
                    int64_t end, F column) noexcept {
    // With more columns than a kernel takes at once, few row tiles at a time stay in the cache for the next columns.
    const int64_t step = n > kMaxColumns ? 4 : end - begin;
    for (int64_t tile = begin; tile < end; tile += step) {
        for (int64_t first = 0; first < n; first += kMaxColumns) {
            Column columns[kMaxColumns];
            const int count = n - first < kMaxColumns ? static_cast<int>(n - first) : kMaxColumns;
            for (int c = 0; c < count; ++c) columns[c] = column(first + c);
            kernels.matmul[static_cast<size_t>(dtype)](args, columns, count, tile,
                                                       end - tile < step ? end : tile + step);
        }
    }
}

/// How many items of `item_bytes` (of weights) a thread should claim at once: enough to be worth the claim, few enough
/// that threads finish together.
int64_t grain(int64_t n_items, int64_t item_bytes, int n_threads) noexcept;

}  // namespace ggmlx::cpu
