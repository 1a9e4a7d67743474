// The mixture. (token, slot) pairs are grouped by expert, so that every expert's weights are read once and its pairs
// are the columns of one product; an expert that is not here, or that nobody chose, costs nothing.

#include <algorithm>
#include <span>

#include "ggmlx/backend/cpu/ops/activations.h"
#include "ggmlx/backend/cpu/ops/scratch.h"

namespace ggmlx::cpu {
namespace {

/// Which pairs chose which expert. Made by one thread, read by all.
struct Groups {
    int32_t* pairs;    ///< [n_pairs] pairs that have an expert here, those of one expert together, in increasing order
    int32_t* begin;    ///< [n_expert + 1] where an expert's pairs begin; then counters while sorting
    int32_t* expert;   ///< [n_expert] the experts that have pairs
    int32_t* slot;     ///< [n_expert] their slots
    uint8_t* is_used;  ///< [n_pairs] the pair has an expert here
    int32_t* n_active;

    Groups(Scratch& scratch, int64_t n_pairs, int64_t n_expert)
        : pairs(scratch.take<int32_t>(n_pairs)),
          begin(scratch.take<int32_t>(n_expert + 1)),
          expert(scratch.take<int32_t>(n_expert)),
          slot(scratch.take<int32_t>(n_expert)),
          is_used(scratch.take<uint8_t>(n_pairs)),
          n_active(scratch.take<int32_t>(1)) {}
};

/// One stacked matrix of the op, with its bias if there is one.
struct Stack {
    const TensorView& weight;
    const TensorView* bias;

    int64_t n_out() const { return weight.shape[1]; }
    int64_t n_in() const { return weight.shape[2]; }
    int64_t n_row_tiles() const { return ceil_div(n_out(), kTileRows); }
    int64_t tile_bytes() const { return slice_bytes(weight.dtype, {kTileRows, n_in()}); }
    MatmulArgs matrix(int64_t slot) const {
        const std::byte* b = bias ? bias->data + slot * bias->slot_stride : nullptr;
        return {weight.data + slot * weight.slot_stride, n_out(), n_in(), reinterpret_cast<const float*>(b)};
    }
};

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

/// Sorts the pairs by expert (counting sort: stable, so the result depends on ids alone).
void group_pairs(const Choice& choice, const Groups& groups, CallStatus& status) noexcept {
    const int32_t* ids = choice.ids.as<const int32_t>();
    std::fill(groups.begin, groups.begin + choice.n_expert() + 1, 0);
    for (int64_t i = 0; i < choice.n_pairs(); ++i) {
        const int64_t slot = choice.slot_of(i, status);
        groups.is_used[i] = slot >= 0;
        if (slot < 0) continue;
        ++groups.begin[ids[i] + 1];
        groups.slot[ids[i]] = static_cast<int32_t>(slot);
    }
    int32_t n_active = 0;
    for (int32_t e = 0; e < choice.n_expert(); ++e) {
        if (groups.begin[e + 1] > 0) groups.expert[n_active++] = e;
        groups.begin[e + 1] += groups.begin[e];
    }
    *groups.n_active = n_active;
    for (int64_t i = 0; i < choice.n_pairs(); ++i)
        if (groups.is_used[i]) groups.pairs[groups.begin[ids[i]]++] = static_cast<int32_t>(i);
    // Every begin now stands at its end, which is the next expert's begin.
    for (int64_t e = choice.n_expert(); e > 0; --e) groups.begin[e] = groups.begin[e - 1];
    groups.begin[0] = 0;
}

/// group_pairs() by one thread; all wait for it.
void group_for_team(const Choice& choice, const Groups& groups, const OpCall& call, Worker& worker) noexcept {
    if (worker.team.index() == 0) group_pairs(choice, groups, *call.status);
    worker.team.barrier();
}

/// Calls f(slot, its pairs, begin, end) for pieces of n_items items of every active expert, shared by the team.
template <class F>
void share_experts(const Groups& groups, int64_t n_items, int64_t item_bytes, Worker& worker, F f) noexcept {
    const int64_t n_active = *groups.n_active;
    const int64_t piece = grain(n_active * n_items, item_bytes, worker.team.size());
    const int64_t n_pieces = ceil_div(n_items, piece);
    worker.team.share(n_active * n_pieces, 1, [&](int64_t i, int64_t) {
        const int32_t e = groups.expert[i / n_pieces];
        const int64_t begin = i % n_pieces * piece;
        const std::span<const int32_t> pairs(groups.pairs + groups.begin[e],
                                             static_cast<size_t>(groups.begin[e + 1] - groups.begin[e]));
        f(groups.slot[e], pairs, begin, std::min(begin + piece, n_items));
    });
}

/// Converts the rows of x that have an expert here. One row per token, or one per pair.
void convert_chosen(const ActivationForm& form, const TensorView& x, const Choice& choice, const Groups& groups,
                    std::byte* dst, const OpCall& call, Worker& worker) noexcept {
    if (!form.is_converted()) return;
    const int64_t n = x.shape[-1], n_rows = x.shape.n_rows();
    const int64_t pairs_per_row = choice.n_pairs() / std::max<int64_t>(n_rows, 1);
    const float* values = x.as<const float>();
    constexpr int64_t kPiece = 32;  // blocks
    const int64_t n_pieces = ceil_div(form.n_blocks(), kPiece);
    worker.team.share(n_rows * n_pieces, 1, [&](int64_t i, int64_t) {
        const int64_t row = i / n_pieces, begin = i % n_pieces * kPiece;
        const uint8_t* used = groups.is_used + row * pairs_per_row;
        if (std::find(used, used + pairs_per_row, 1) == used + pairs_per_row) return;
        form.convert(values + row * n, begin, std::min(begin + kPiece, form.n_blocks()), dst + row * form.row_bytes(),
                     worker.kernels, *call.status, row * pairs_per_row / choice.k());
    });
}

/// Zeros the rows [n_pairs, n] of pairs without an expert here, which nobody else touches.
void clear_unused(const Groups& groups, int64_t n_pairs, float* rows, int64_t n, const Worker& worker) noexcept {
    for (int64_t i = worker.team.index(); i < n_pairs; i += worker.team.size())
        if (!groups.is_used[i]) std::fill(rows + i * n, rows + (i + 1) * n, 0.0f);
}

/// y[pair] = weight · x[row of the pair] (+ bias) for every pair with an expert here, zero for the others.
template <class RowOfPair>
void multiply_pairs(const Stack& stack, const Choice& choice, const Groups& groups, const ActivationRows& rows,
                    RowOfPair row_of_pair, float* y, Worker& worker) noexcept {
    clear_unused(groups, choice.n_pairs(), y, stack.n_out(), worker);
    share_experts(groups, stack.n_row_tiles(), stack.tile_bytes(), worker,
                  [&](int64_t slot, std::span<const int32_t> pairs, int64_t begin, int64_t end) {
                      multiply_tiles(worker.kernels, stack.weight.dtype, stack.matrix(slot),
                                     static_cast<int64_t>(pairs.size()), begin, end, [&](int64_t c) {
                                         const int64_t pair = pairs[static_cast<size_t>(c)];
                                         return Column{rows.row(row_of_pair(pair)), y + pair * stack.n_out()};
                                     });
                  });
}

/// Scratch of the two halves of an expert; h and its converted form have a row per pair.
struct FeedForwardScratch {
    Groups groups;
    std::byte *x, *x_up;  ///< x as gate reads it, and as up does if that differs
    float *gate, *up;
    std::byte* h;

    FeedForwardScratch(Scratch& s, int64_t n_tokens, int64_t n_pairs, int64_t n_expert, int64_t n_ff,
                       const ActivationForm& x_form, const ActivationForm& up_form, const ActivationForm& h_form)
        : groups(s, n_pairs, n_expert),
          x(s.take<std::byte>(n_tokens * x_form.row_bytes())),
          x_up(s.take<std::byte>(n_tokens * (up_form == x_form ? 0 : up_form.row_bytes()))),
          gate(s.take<float>(n_pairs * n_ff)),
          up(s.take<float>(n_pairs * n_ff)),
          h(s.take<std::byte>(n_pairs * h_form.row_bytes())) {}
};

/// gate, up and down of Experts and ExpertRows, which both have them from input 3 on.
struct FeedForward {
    explicit FeedForward(const OpCall& c)
        : call(c), gate{c.in[3], bias(6)}, up{c.in[4], bias(7)}, down{c.in[5], bias(8)} {}

    const TensorView* bias(size_t i) const { return call.param<ExpertsParams>().has_bias ? &call.in[i] : nullptr; }
    ActivationForm x_form() const { return {gate.weight.dtype, gate.n_in()}; }
    ActivationForm up_form() const { return {up.weight.dtype, up.n_in()}; }
    ActivationForm h_form() const { return {down.weight.dtype, down.n_in()}; }

    FeedForwardScratch take_scratch(const Choice& choice, Scratch& scratch) const {
        return FeedForwardScratch(scratch, call.in[0].shape[0], choice.n_pairs(), choice.n_expert(), gate.n_out(),
                                  x_form(), up_form(), h_form());
    }
    /// Groups the pairs and converts x.
    void prepare(const Choice& choice, Scratch& scratch, Worker& worker) const noexcept;
    /// Rows of all pairs into rows [n_pairs, n_embd].
    void run(const Choice& choice, Scratch& scratch, float* rows, Worker& worker) const noexcept;
    /// h = swiglu(gate · x, up · x) for 32-row blocks [begin, end) of one expert, already in the form down reads.
    void first_half(int64_t slot, std::span<const int32_t> pairs, int64_t begin, int64_t end, const Choice& choice,
                    const ActivationRows& x, const ActivationRows& x_up, const FeedForwardScratch& s,
                    const CpuKernels& kernels) const noexcept;

    const OpCall& call;
    Stack gate, up, down;
};

void FeedForward::first_half(int64_t slot, std::span<const int32_t> pairs, int64_t begin, int64_t end,
                             const Choice& choice, const ActivationRows& x, const ActivationRows& x_up,
                             const FeedForwardScratch& s, const CpuKernels& kernels) const noexcept {
    const int64_t n_ff = gate.n_out(), n_pairs = static_cast<int64_t>(pairs.size());
    const auto product = [&](const Stack& stack, const ActivationRows& columns, float* y) {
        const int64_t last_tile = std::min(2 * end, stack.n_row_tiles());
        multiply_tiles(kernels, stack.weight.dtype, stack.matrix(slot), n_pairs, 2 * begin, last_tile, [&](int64_t c) {
            const int64_t pair = pairs[static_cast<size_t>(c)];
            return Column{columns.row(pair / choice.k()), y + pair * n_ff};
        });
    };
    product(gate, x, s.gate);
    product(up, x_up, s.up);
    const SwiGLUParams& p = call.param<ExpertsParams>().activation;
    const int64_t first = kBlock * begin, n = std::min(kBlock * end, n_ff) - first;
    for (const int64_t pair : pairs) {
        float* g = s.gate + pair * n_ff;
        kernels.swiglu(g + first, s.up + pair * n_ff + first, g + first, n, {p.alpha, p.clamp, p.up_offset});
        h_form().convert(g, begin, end, s.h + pair * h_form().row_bytes(), kernels, *call.status, pair / choice.k());
    }
}

void FeedForward::prepare(const Choice& choice, Scratch& scratch, Worker& worker) const noexcept {
    const FeedForwardScratch s = take_scratch(choice, scratch);
    group_for_team(choice, s.groups, call, worker);
    convert_chosen(x_form(), call.in[0], choice, s.groups, s.x, call, worker);
    if (!(up_form() == x_form())) convert_chosen(up_form(), call.in[0], choice, s.groups, s.x_up, call, worker);
}

void FeedForward::run(const Choice& choice, Scratch& scratch, float* rows, Worker& worker) const noexcept {
    const FeedForwardScratch s = take_scratch(choice, scratch);
    const float* values = call.in[0].as<const float>();
    const ActivationRows x = x_form().rows(values, s.x);
    const ActivationRows x_up = up_form() == x_form() ? x : up_form().rows(values, s.x_up);
    share_experts(s.groups, ceil_div(gate.n_out(), kBlock), 2 * (gate.tile_bytes() + up.tile_bytes()), worker,
                  [&](int64_t slot, std::span<const int32_t> pairs, int64_t begin, int64_t end) {
                      first_half(slot, pairs, begin, end, choice, x, x_up, s, worker.kernels);
                  });
    worker.team.barrier();
    multiply_pairs(
        down, choice, s.groups, h_form().rows(s.gate, s.h), [](int64_t pair) { return pair; }, rows, worker);
}

/// One stacked matrix times rows.
struct ExpertMatmul {
    explicit ExpertMatmul(const OpCall& c)
        : call(c),
          stack{c.in[3], c.param<ExpertsParams>().has_bias ? &c.in[4] : nullptr},
          choice{c.in[1], &c.in[2], stack.weight.shape[0]},
          form(stack.weight.dtype, stack.n_in()),
          scratch(c.scratch),
          groups(scratch, choice.n_pairs(), choice.n_expert()),
          converted(scratch.take<std::byte>(c.in[0].shape.n_rows() * form.row_bytes())) {}

    void prepare(Worker& worker) const noexcept {
        group_for_team(choice, groups, call, worker);
        convert_chosen(form, call.in[0], choice, groups, converted, call, worker);
    }
    void run(Worker& worker) const noexcept {
        const int64_t pairs_per_row = call.in[0].shape.rank() == 3 ? 1 : choice.k();
        multiply_pairs(
            stack, choice, groups, form.rows(call.in[0].as<const float>(), converted),
            [&](int64_t pair) { return pair / pairs_per_row; }, call.out[0].as<float>(), worker);
    }

    const OpCall& call;
    Stack stack;
    Choice choice;
    ActivationForm form;
    Scratch scratch;
    Groups groups;
    std::byte* converted;
};

/// y_t = Σ_s weights[t][s] · row(t, s), in slot order from 0, for columns shared by the team. row gives null for
/// nothing.
template <class Row>
void sum_rows(const OpCall& call, const float* weights, int64_t k, Worker& worker, Row row) noexcept {
    constexpr int64_t kPiece = 1024;
    const int64_t n = call.out[0].shape[1], n_pieces = ceil_div(n, kPiece);
    worker.team.share(call.out[0].shape[0] * n_pieces, 1, [&](int64_t i, int64_t) {
        const int64_t t = i / n_pieces, begin = i % n_pieces * kPiece, count = std::min(kPiece, n - begin);
        float* y = call.out[0].as<float>() + t * n + begin;
        std::fill(y, y + count, 0.0f);
        for (int64_t s = 0; s < k; ++s)
            if (const float* r = row(t * k + s)) worker.kernels.add_scaled(weights[t * k + s], r + begin, y, count);
    });
}

/// The row of pair i from the first device that has its expert; (slots, rows) per device from input `first` on. Null
/// for id -1, and for an id that no device has, which is reported.
const float* find_row(const OpCall& call, const TensorView& ids, size_t first, int64_t i) noexcept {
    const int32_t id = ids.as<const int32_t>()[i];
    if (id == -1) return nullptr;
    for (size_t part = first; part + 1 < call.in.size(); part += 2) {
        const TensorView &slots = call.in[part], &rows = call.in[part + 1];
        if (id >= 0 && id < slots.shape[0] && slots.as<const int32_t>()[id] >= 0)
            return rows.as<const float>() + i * rows.shape[2];
    }
    call.status->report(Fault::BadIndex, i / ids.shape[1]);
    return nullptr;
}

}  // namespace

void expert_rows_light(const OpCall& call, Worker& worker) noexcept {
    const FeedForward expert(call);
    Scratch scratch(call.scratch);
    expert.prepare({call.in[1], &call.in[2], call.in[3].shape[0]}, scratch, worker);
}

void expert_rows_heavy(const OpCall& call, Worker& worker) noexcept {
    const FeedForward expert(call);
    Scratch scratch(call.scratch);
    expert.run({call.in[1], &call.in[2], call.in[3].shape[0]}, scratch, call.out[0].as<float>(), worker);
}

void experts_light(const OpCall& call, Worker& worker) noexcept {
    const FeedForward expert(call);
    const Choice choice{call.in[1], nullptr, call.in[3].shape[0]};
    Scratch scratch(call.scratch);
    scratch.take<float>(choice.n_pairs() * call.in[0].shape[1]);
    expert.prepare(choice, scratch, worker);
}

void experts_heavy(const OpCall& call, Worker& worker) noexcept {
    const FeedForward expert(call);
    const Choice choice{call.in[1], nullptr, call.in[3].shape[0]};
    const int64_t n = call.in[0].shape[1], k = choice.k();
    Scratch scratch(call.scratch);
    float* rows = scratch.take<float>(choice.n_pairs() * n);
    expert.run(choice, scratch, rows, worker);
    worker.team.barrier();
    const int32_t* ids = choice.ids.as<const int32_t>();
    sum_rows(call, call.in[2].as<const float>(), k, worker, [&](int64_t i) -> const float* {
        return ids[i] >= 0 && ids[i] < choice.n_expert() ? rows + i * n : nullptr;
    });
}

void expert_matmul_light(const OpCall& call, Worker& worker) noexcept { ExpertMatmul(call).prepare(worker); }
void expert_matmul_heavy(const OpCall& call, Worker& worker) noexcept { ExpertMatmul(call).run(worker); }

void expert_select_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView& ids = call.in[0];
    const int64_t n = call.out[0].shape[2];
    worker.team.share(ids.shape.n_elements(), 1, [&](int64_t i, int64_t) {
        float* y = call.out[0].as<float>() + i * n;
        if (const float* row = find_row(call, ids, 1, i))
            std::copy(row, row + n, y);
        else
            std::fill(y, y + n, 0.0f);
    });
}

void expert_sum_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView& ids = call.in[1];
    sum_rows(call, call.in[0].as<const float>(), ids.shape[1], worker,
             [&](int64_t i) { return find_row(call, ids, 2, i); });
}

size_t expert_rows_scratch(const Node& node, int) {
    const Tensor x = node.inputs[0], ids = node.inputs[1];
    const Tensor gate = node.inputs[3], up = node.inputs[4], down = node.inputs[5];
    Scratch scratch(nullptr);
    const FeedForwardScratch used(scratch, x.dim(0), ids.shape().n_elements(), gate.dim(0), gate.dim(1),
                                  ActivationForm(gate.dtype(), gate.dim(2)), ActivationForm(up.dtype(), up.dim(2)),
                                  ActivationForm(down.dtype(), down.dim(2)));
    return scratch.used_bytes();
}

size_t experts_scratch(const Node& node, int n_threads) {
    Scratch scratch(nullptr);
    scratch.take<float>(node.inputs[1].shape().n_elements() * node.inputs[0].dim(1));
    return scratch.used_bytes() + expert_rows_scratch(node, n_threads);
}

size_t expert_matmul_scratch(const Node& node, int) {
    const Tensor x = node.inputs[0], ids = node.inputs[1], weight = node.inputs[3];
    Scratch scratch(nullptr);
    const Groups groups(scratch, ids.shape().n_elements(), weight.dim(0));
    scratch.take<std::byte>(x.shape().n_rows() * ActivationForm(weight.dtype(), weight.dim(2)).row_bytes());
    return scratch.used_bytes();
}

}  // namespace ggmlx::cpu
