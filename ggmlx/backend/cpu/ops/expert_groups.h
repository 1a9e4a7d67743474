#pragma once
// Which (token, slot) pairs chose which expert. Pairs are grouped by expert, so that every expert's weights are read
// once; an expert that is not here, or that nobody chose, costs nothing.

#include <algorithm>
#include <span>

#include "ggmlx/backend/cpu/ops/activations.h"

namespace ggmlx::cpu {

/// ids [n_tokens, k] and the table that gives an expert's slot (null: slot = expert).
struct Choice {
    const TensorView& ids;
    const TensorView* slots;
    int64_t n_slots;

    int64_t k() const { return ids.shape[1]; }
    int64_t n_pairs() const { return ids.shape.n_elements(); }
    int64_t n_expert() const { return slots ? slots->shape[0] : n_slots; }
    /// The slot of pair i, -1 if it has no expert here. What lies outside its table is reported and has none.
    int64_t slot_of(int64_t i, CallStatus& status) const noexcept {
        const int32_t id = ids.as<const int32_t>()[i];
        if (id == -1) return -1;
        const bool is_expert = id >= 0 && id < n_expert();
        const int64_t slot = !is_expert ? -1 : slots ? slots->as<const int32_t>()[id] : id;
        if (is_expert && slot >= -1 && slot < n_slots) return slot;
        status.report(Fault::BadIndex, i / k());
        return -1;
    }
};

/// Which pairs chose which expert. Made by one thread, read by all.
struct Groups {
    int32_t* pairs;    ///< [n_pairs] pairs that have an expert here, those of one expert together, in increasing order
    int32_t* begin;    ///< [n_expert + 1] where an expert's pairs begin; then counters while sorting
    int32_t* expert;   ///< [n_expert] the experts that have pairs
    int32_t* slot;     ///< [n_expert] their slots
    int32_t* group;    ///< [n_expert] the first group of 16 columns of an expert with many pairs, -1 with few
    uint8_t* is_used;  ///< [n_pairs] the pair has an expert here
    int32_t* n_active;
    int32_t* n_grouped;  ///< groups in all

    Groups(Scratch& scratch, int64_t n_pairs, int64_t n_expert)
        : pairs(scratch.take<int32_t>(n_pairs)),
          begin(scratch.take<int32_t>(n_expert + 1)),
          expert(scratch.take<int32_t>(n_expert)),
          slot(scratch.take<int32_t>(n_expert)),
          group(scratch.take<int32_t>(n_expert)),
          is_used(scratch.take<uint8_t>(n_pairs)),
          n_active(scratch.take<int32_t>(1)),
          n_grouped(scratch.take<int32_t>(1)) {}

    std::span<const int32_t> pairs_of(int64_t e) const {
        return {pairs + begin[e], static_cast<size_t>(begin[e + 1] - begin[e])};
    }
    /// At most: every expert with many pairs fills all its groups but one.
    static int64_t max_groups(int64_t n_pairs, int64_t n_expert) {
        return n_pairs / kGroupColumns + std::min(n_expert, n_pairs / (kMaxColumns + 1));
    }
};

/// Sorts the pairs by expert, which one thread does and all wait for. What an id outside its table means is reported.
void group_pairs(const Choice& choice, const Groups& groups, const OpCall& call, Worker& worker) noexcept;

/// Calls f(expert, begin, end) for pieces of n_items items of every active expert, shared by the team or by the
/// thread's group. least: items that are worth being taken at once, where that leaves enough pieces.
template <class F>
void share_experts(const Groups& groups, int64_t n_items, int64_t item_bytes, int64_t least, Among among,
                   Worker& worker, F f) noexcept {
    const int n_threads = worker.team.size(among);
    const int64_t n_all = *groups.n_active * n_items, fair = n_all / (4 * n_threads);
    const int64_t piece = std::max(grain(n_all, item_bytes, n_threads), std::min(least, fair));
    const int64_t n_pieces = ceil_div(n_items, piece);
    worker.team.share(among, *groups.n_active * n_pieces, 1, [&](int64_t i, int64_t) {
        const int64_t begin = i % n_pieces * piece;
        f(groups.expert[i / n_pieces], begin, std::min(begin + piece, n_items));
    });
}

/// Converts the rows of x that have an expert here. One row per token, or one per pair.
void convert_chosen(const ActivationForm& form, const TensorView& x, const Choice& choice, const Groups& groups,
                    std::byte* dst, const OpCall& call, Worker& worker) noexcept;

/// The converted rows of x as the columns of experts: rows for those with few pairs, groups for those with many.
struct ExpertColumns {
    ActivationForm form;
    std::byte* rows;          ///< as convert_chosen makes them
    ActivationBlock* groups;  ///< [n_grouped], each as ColumnGroups::x

    ExpertColumns(Scratch& scratch, const ActivationForm& f, int64_t n_rows, int64_t n_pairs, int64_t n_expert)
        : form(f),
          rows(scratch.take<std::byte>(n_rows * f.row_bytes())),
          groups(scratch.take<ActivationBlock>(f.is_grouped(n_pairs) ? Groups::max_groups(n_pairs, n_expert) *
                                                                           f.blocks_in_group() * kGroupColumns
                                                                     : 0)) {}

    bool is_grouped(const Groups& g, int64_t e) const { return form.can_group() && g.group[e] >= 0; }
    ActivationBlock* groups_of(const Groups& g, int64_t e) const {
        return groups + g.group[e] * form.blocks_in_group() * kGroupColumns;
    }
    const ActivationBlock* row(int64_t i) const {
        return reinterpret_cast<const ActivationBlock*>(rows + i * form.row_bytes());
    }
};

/// Fills the groups of experts with many pairs: with the blocks of converted rows, or from the rows' values (not finite
/// ones were reported when rows were converted).
template <class RowOfPair>
void gather_columns(const ExpertColumns& x, const float* values, const Groups& groups, RowOfPair row_of_pair,
                    Worker& worker) noexcept {
    if (!x.form.can_group() || *groups.n_grouped == 0) return;
    const int64_t n_blocks = x.form.n_blocks();
    worker.team.share(*groups.n_active, 1, [&](int64_t i, int64_t) {
        const int32_t e = groups.expert[i];
        if (groups.group[e] < 0) return;
        const std::span<const int32_t> pairs = groups.pairs_of(e);
        ActivationBlock* to = x.groups_of(groups, e);
        const bool rounds = x.form.columns(static_cast<int64_t>(pairs.size())) == ColumnForm::Bf16Groups;
        for (size_t c = 0; c < pairs.size(); ++c) {
            const auto column = static_cast<int64_t>(c), from = int64_t{row_of_pair(pairs[c])};
            if (rounds) {
                auto* block = reinterpret_cast<std::byte*>(to + x.form.group_block(column));
                x.form.round(values + from * x.form.n(), 0, n_blocks, block, worker.kernels);
                continue;
            }
            const ActivationBlock* row = x.row(from);
            for (int64_t b = 0; b < n_blocks; ++b) to[x.form.group_block(column, b)] = row[b];
        }
        x.form.clear_group_end(to, static_cast<int64_t>(pairs.size()), 0, n_blocks);
    });
}

}  // namespace ggmlx::cpu
