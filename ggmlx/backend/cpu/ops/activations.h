#pragma once
// The rows of x in the form that a weight type's matmul kernel reads: int8 blocks, padded floats, or x itself.

#include <algorithm>

#include "ggmlx/backend/cpu/ops/ops.h"
#include "ggmlx/backend/cpu/ops/scratch.h"
#include "ggmlx/core/math.h"

namespace ggmlx::cpu {

inline constexpr int64_t kBlock = 32;

/// Rows as a kernel's columns want them.
struct ActivationRows {
    const std::byte* data;
    int64_t row_bytes;
    const void* row(int64_t i) const { return data + i * row_bytes; }
};

inline int64_t n_groups(int64_t n_columns) { return ceil_div(n_columns, int64_t{kGroupColumns}); }

/// Rows of n activations for weights of one dtype and so many partial sums (MatmulArgs).
class ActivationForm {
  public:
    ActivationForm(DType weight, int64_t n, int n_partials = 8)
        : int8_(is_block(weight) && weight != DType::MXFP8),
          padded_(weight == DType::MXFP8 && n % kBlock != 0),
          n_partials_(n_partials),
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
    /// False: the weights' kernels take columns as rows, however many.
    bool can_group() const { return int8_; }
    /// True if n columns are multiplied as groups: more than a kernel takes at once, so that keeping a weight's
    /// decoding for all of them is worth it.
    bool is_grouped(int64_t n) const { return can_group() && n > kMaxColumns; }
    /// Blocks of a column in a group, whose parts, one per partial sum, are of the same size.
    int64_t blocks_in_group() const { return round_up(n_blocks(), int64_t{n_partials_}); }
    /// Where column c of groups begins; with b the place of its block b.
    int64_t group_block(int64_t c, int64_t b = 0) const {
        const int64_t padded = blocks_in_group(), place = b % n_partials_ * (padded / n_partials_) + b / n_partials_;
        return (c / kGroupColumns * padded + place) * kGroupColumns + c % kGroupColumns;
    }
    int64_t group_bytes(int64_t n) const {
        return n_groups(n) * kGroupColumns * blocks_in_group() * static_cast<int64_t>(sizeof(ActivationBlock));
    }
    /// Of n converted rows in the order that suits n columns.
    int64_t bytes(int64_t n) const { return is_grouped(n) ? group_bytes(n) : n * row_bytes(); }
    /// The converted rows, or x itself.
    ActivationRows rows(const float* x, const std::byte* converted) const {
        if (is_converted()) return {converted, row_bytes()};
        return {reinterpret_cast<const std::byte*>(x), n_ * static_cast<int64_t>(sizeof(float))};
    }
    /// Converts blocks [begin, end) of a row; a value that is not finite is reported for `row`. in_group: dst is where
    /// a column of a group begins.
    void convert(const float* x, int64_t begin, int64_t end, std::byte* dst, const CpuKernels& kernels,
                 CallStatus& status, int64_t row, bool in_group = false) const noexcept;

    /// Zeros what the last of n columns leaves free in its group, blocks [begin, end).
    void clear_group_end(ActivationBlock* groups, int64_t n, int64_t begin, int64_t end) const noexcept;

  private:
    bool int8_, padded_;
    int n_partials_;
    int64_t n_;
};

/// Converts the rows of x [n_tokens, n_head, n] to dst as far as anything is to be done: rows in the order of x, or for
/// every head the groups of its tokens, n_head · bytes(n_tokens) bytes in all.
void convert_rows(const ActivationForm& form, const float* x, int64_t n_tokens, int64_t n_head, std::byte* dst,
                  const OpCall& call, Worker& worker) noexcept;

/// What one thread needs to multiply groups: panels and sums of a few row tiles.
class PanelScratch {
  public:
    /// For every thread, if n columns of this form are grouped; takes nothing otherwise.
    PanelScratch(Scratch& scratch, const ActivationForm& form, int64_t n, int n_threads)
        : n_blocks_(form.blocks_in_group()),
          panels_(scratch.take<PanelBlock>(form.is_grouped(n) ? n_threads * n_tiles() * n_blocks_ : 0)),
          sums_(scratch.take<PanelSums>(form.is_grouped(n) ? n_threads * n_tiles() : 0)) {}
    /// Row tiles that a kernel is given at once, so that their panels stay in the second-level cache.
    int64_t n_tiles() const {
        constexpr int64_t kBytes = 384 << 10, kMost = 8;
        return std::clamp<int64_t>(kBytes / (n_blocks_ * static_cast<int64_t>(sizeof(PanelBlock)) + 1), 1, kMost);
    }
    /// y = W x for row tiles [begin, end).
    void multiply(const CpuKernels& kernels, DType dtype, const MatmulArgs& args, const ColumnGroups& columns,
                  int64_t begin, int64_t end, int thread) const noexcept {
        for (int64_t tile = begin; tile < end; tile += n_tiles())
            kernels.matmul_groups[static_cast<size_t>(dtype)](args, columns, tile, std::min(end, tile + n_tiles()),
                                                              panels_ + thread * n_tiles() * n_blocks_,
                                                              sums_ + thread * n_tiles());
    }

  private:
    int64_t n_blocks_;
    PanelBlock* panels_;
    PanelSums* sums_;
};

/// Multiplies row tiles [begin, end) with n columns that are not grouped, which column(i) gives as a Column.
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
