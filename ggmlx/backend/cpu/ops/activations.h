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

/// How the columns of one product are multiplied: one by one as rows, or in groups of blocks.
enum class ColumnForm : uint8_t { Rows, Int8Groups, Bf16Groups };

/// The least number of columns for which products in bf16 pay beside those in int8: more than one group. Per block of a
/// row tile, in cycles: decoding to bf16 takes 55 (MXFP4) to 110, then 16 to 20 a group; int8 takes 15 and then about
/// 70 a group with AMX, 6 a column with AVX-512 (BENCHMARKS.md; decoding as llvm-mca has it for a Xeon). They are even
/// at one group and 155 to 95 … 150 at two.
inline constexpr int64_t kBf16Columns = kGroupColumns + 1;

/// Rows of n activations for weights of one dtype and so many partial sums (MatmulArgs).
class ActivationForm {
  public:
    ActivationForm(const CpuKernels& kernels, DType weight, int64_t n, int n_partials = 8)
        : int8_(is_block(weight) && weight != DType::MXFP8),
          padded_(weight == DType::MXFP8 && n % kBlock != 0),
          bf16_(kernels.bf16.matmul[static_cast<size_t>(weight)] != nullptr),
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
    bool can_group() const { return int8_ || bf16_; }
    bool has_bf16() const { return bf16_; }
    /// Groups: more columns than a kernel takes at once, so that keeping a weight's decoding for all is worth it.
    ColumnForm columns(int64_t n) const {
        if (n <= kMaxColumns || !can_group()) return ColumnForm::Rows;
        return bf16_ && (!int8_ || n >= kBf16Columns) ? ColumnForm::Bf16Groups : ColumnForm::Int8Groups;
    }
    bool is_grouped(int64_t n) const { return columns(n) != ColumnForm::Rows; }
    /// Of the largest panel that a product of groups needs per block of a row tile.
    int64_t panel_bytes() const {
        static_assert(sizeof(Bf16Panel) >= sizeof(PanelBlock));
        return static_cast<int64_t>(bf16_ ? sizeof(Bf16Panel) : int8_ ? sizeof(PanelBlock) : 0);
    }
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
    /// Converts blocks [begin, end) of a row; a value that is not finite is reported for `row`, where int8 could not
    /// express it. Not as rows: dst is where a column of a group begins.
    void convert(const float* x, int64_t begin, int64_t end, std::byte* dst, const CpuKernels& kernels,
                 CallStatus& status, int64_t row, ColumnForm as = ColumnForm::Rows) const noexcept;

    /// Rounds blocks [begin, end) of a row to bf16, dst being where a column of a group begins; false if a value is not
    /// finite.
    bool round(const float* x, int64_t begin, int64_t end, std::byte* dst, const CpuKernels& kernels) const noexcept {
        return kernels.bf16.round_row(x, n_, begin, end, reinterpret_cast<Bf16Block*>(dst), n_partials_);
    }

    /// Zeros what the last of n columns leaves free in its group, blocks [begin, end).
    void clear_group_end(ActivationBlock* groups, int64_t n, int64_t begin, int64_t end) const noexcept;

  private:
    bool int8_, padded_, bf16_;
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
        : tile_bytes_(form.blocks_in_group() * form.panel_bytes()),
          n_tiles_(tiles_at_once(form)),
          panels_(scratch.take<std::byte>(form.is_grouped(n) ? n_threads * n_tiles_ * tile_bytes_ : 0)),
          sums_(scratch.take<PanelSums>(form.is_grouped(n) ? n_threads * n_tiles_ : 0)) {}
    /// Row tiles that a kernel is given at once.
    int64_t n_tiles() const { return n_tiles_; }
    /// y = W x for row tiles [begin, end); columns are in groups of this form.
    void multiply(const CpuKernels& kernels, DType dtype, ColumnForm form, const MatmulArgs& args,
                  const ColumnGroups& columns, int64_t begin, int64_t end, int thread) const noexcept {
        std::byte* panels = panels_ + thread * n_tiles_ * tile_bytes_;
        for (int64_t tile = begin; tile < end; tile += n_tiles_) {
            const int64_t last = std::min(end, tile + n_tiles_);
            if (form == ColumnForm::Bf16Groups)
                kernels.bf16.matmul[static_cast<size_t>(dtype)](args, columns, tile, last,
                                                                reinterpret_cast<Bf16Panel*>(panels));
            else
                kernels.matmul_groups[static_cast<size_t>(dtype)](
                    args, columns, tile, last, reinterpret_cast<PanelBlock*>(panels), sums_ + thread * n_tiles_);
        }
    }

  private:
    /// So many that their panels stay in the second-level cache. Those of bf16 are multiplied by twos, and processors
    /// that have it have at least 1 MiB.
    int64_t tiles_at_once(const ActivationForm& form) const {
        constexpr int64_t kBytes = 384 << 10, kBf16Bytes = 512 << 10, kMost = 8;
        if (!form.has_bf16()) return std::clamp<int64_t>(kBytes / (tile_bytes_ + 1), 1, kMost);
        return std::clamp<int64_t>(kBf16Bytes / tile_bytes_ / 2 * 2, 2, kMost);
    }

    int64_t tile_bytes_;
    int64_t n_tiles_;
    std::byte* panels_;
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
