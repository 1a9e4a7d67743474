#pragma once
// Stacked matrices of experts, or a shard of them, and their products with the pairs that chose an expert.

#include <algorithm>
#include <span>

#include "ggmlx/backend/cpu/ops/expert_groups.h"
#include "ggmlx/backend/expert_shards.h"

namespace ggmlx::cpu {

/// A matrix per slot, with a bias per slot if there is one.
struct Stack {
    DType dtype;
    const std::byte* weights;
    int64_t slot_stride, n_out, n_in;
    const std::byte* biases = nullptr;
    int64_t bias_stride = 0;
    int n_partials = 8;

    /// bias may be null: there is none.
    void set_bias(const TensorView* bias, int shard) {
        biases = bias ? bias->data + shard * bias->shard_stride : nullptr;
        bias_stride = bias ? bias->slot_stride : 0;
    }
    int64_t n_row_tiles() const { return ceil_div(n_out, kTileRows); }
    int64_t tile_bytes() const { return slice_bytes(dtype, {kTileRows, n_in}); }
    ActivationForm form(const CpuKernels& kernels) const { return {kernels, dtype, n_in, n_partials}; }
    MatmulArgs matrix(int64_t slot) const {
        const std::byte* bias = biases ? biases + slot * bias_stride : nullptr;
        return {weights + slot * slot_stride, n_out, n_in, reinterpret_cast<const float*>(bias), n_partials};
    }
};

/// The rows of one shard, with their biases; everything if the weight is whole (one shard). bias may be null.
inline Stack rows_of_shard(const TensorView& weight, const TensorView* bias, int shard) {
    Stack stack{weight.dtype, weight.data + shard * weight.shard_stride, weight.slot_stride,
                shard_extent(weight.shape[1], shard, weight.n_shards), weight.shape[2]};
    stack.set_bias(bias, shard);
    return stack;
}

/// The columns of one shard, whose products are a part of the sum; everything if the weight is whole.
inline Stack columns_of_shard(const TensorView& weight, int shard) {
    Stack stack{weight.dtype, weight.data + shard * weight.shard_stride, weight.slot_stride, weight.shape[1],
                shard_extent(weight.shape[2], shard, weight.n_shards)};
    stack.n_partials = 8 / weight.n_shards;
    return stack;
}

/// Zeros the rows [n_pairs, n] of pairs without an expert here, which nobody else touches.
inline void clear_unused(const Groups& groups, int64_t n_pairs, float* rows, int64_t n, const Worker& worker) noexcept {
    for (int64_t i = worker.team.index(); i < n_pairs; i += worker.team.size())
        if (!groups.is_used[i]) std::fill(rows + i * n, rows + (i + 1) * n, 0.0f);
}

/// y[pair] = weight · x[row of the pair] (+ bias) for row tiles [begin, end) and all pairs of expert e. values: x
/// before its conversion.
template <class RowOfPair>
void multiply_expert(const Stack& stack, int64_t e, const Groups& groups, const ExpertColumns& x, const float* values,
                     RowOfPair row_of_pair, const PanelScratch& panels, float* y, int64_t begin, int64_t end,
                     Worker& worker) noexcept {
    const std::span<const int32_t> pairs = groups.pairs_of(e);
    const auto n = static_cast<int64_t>(pairs.size());
    const MatmulArgs args = stack.matrix(groups.slot[e]);
    if (x.is_grouped(groups, e)) {
        return panels.multiply(worker.kernels, stack.dtype, x.form.columns(n), args,
                               {x.groups_of(groups, e), n, y, stack.n_out, pairs.data()}, begin, end,
                               worker.team.index());
    }
    const ActivationRows rows = x.form.rows(values, x.rows);
    multiply_tiles(worker.kernels, stack.dtype, args, n, begin, end, [&](int64_t c) {
        const int64_t pair = pairs[static_cast<size_t>(c)];
        return Column{rows.row(row_of_pair(pair)), y + pair * stack.n_out};
    });
}

/// y[pair] = weight · x[row of the pair] (+ bias) for every pair with an expert here; the others' rows stay as they
/// are.
template <class RowOfPair>
void multiply_pairs(const Stack& stack, const Groups& groups, const ExpertColumns& x, const float* values,
                    RowOfPair row_of_pair, const PanelScratch& panels, float* y, Among among, Worker& worker) noexcept {
    const int64_t least = *groups.n_grouped > 0 ? panels.n_tiles() : 1;
    share_experts(groups, stack.n_row_tiles(), stack.tile_bytes(), least, among, worker,
                  [&](int64_t e, int64_t begin, int64_t end) {
                      multiply_expert(stack, e, groups, x, values, row_of_pair, panels, y, begin, end, worker);
                  });
}

}  // namespace ggmlx::cpu
