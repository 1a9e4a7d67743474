// The mixture: every expert's pairs are the columns of one product.

#include <algorithm>
#include <span>

#include "ggmlx/backend/cpu/ops/expert_groups.h"

namespace ggmlx::cpu {
namespace {

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

/// Zeros the rows [n_pairs, n] of pairs without an expert here, which nobody else touches.
void clear_unused(const Groups& groups, int64_t n_pairs, float* rows, int64_t n, const Worker& worker) noexcept {
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
        return panels.multiply(worker.kernels, stack.weight.dtype, x.form.columns(n), args,
                               {x.groups_of(groups, e), n, y, stack.n_out(), pairs.data()}, begin, end,
                               worker.team.index());
    }
    const ActivationRows rows = x.form.rows(values, x.rows);
    multiply_tiles(worker.kernels, stack.weight.dtype, args, n, begin, end, [&](int64_t c) {
        const int64_t pair = pairs[static_cast<size_t>(c)];
        return Column{rows.row(row_of_pair(pair)), y + pair * stack.n_out()};
    });
}

/// y[pair] = weight · x[row of the pair] (+ bias) for every pair with an expert here, zero for the others.
template <class RowOfPair>
void multiply_pairs(const Stack& stack, const Choice& choice, const Groups& groups, const ExpertColumns& x,
                    const float* values, RowOfPair row_of_pair, const PanelScratch& panels, float* y,
                    Worker& worker) noexcept {
    clear_unused(groups, choice.n_pairs(), y, stack.n_out(), worker);
    const int64_t least = *groups.n_grouped > 0 ? panels.n_tiles() : 1;
    share_experts(groups, stack.n_row_tiles(), stack.tile_bytes(), least, worker,
                  [&](int64_t e, int64_t begin, int64_t end) {
                      multiply_expert(stack, e, groups, x, values, row_of_pair, panels, y, begin, end, worker);
                  });
}

/// Scratch of the two halves of an expert; h and its converted form have a row per pair.
struct FeedForwardScratch {
    Groups groups;
    ExpertColumns x, x_up;  ///< as gate reads it, and as up does if that differs
    float *gate, *up;
    ExpertColumns h;
    PanelScratch x_panels, h_panels;

    FeedForwardScratch(Scratch& s, int64_t n_tokens, int64_t n_pairs, int64_t n_expert, int64_t n_ff,
                       const ActivationForm& x_form, const ActivationForm& up_form, const ActivationForm& h_form,
                       int n_threads)
        : groups(s, n_pairs, n_expert),
          x(s, x_form, n_tokens, n_pairs, n_expert),
          x_up(s, up_form, up_form == x_form ? 0 : n_tokens, up_form == x_form ? 0 : n_pairs, n_expert),
          gate(s.take<float>(n_pairs * n_ff)),
          up(s.take<float>(n_pairs * n_ff)),
          h(s, h_form, n_pairs, n_pairs, n_expert),
          x_panels(s, wider(x_form, up_form), n_pairs, n_threads),
          h_panels(s, h_form, n_pairs, n_threads) {}

    /// The one of two forms of the same rows that needs the larger panels, if any does.
    static const ActivationForm& wider(const ActivationForm& a, const ActivationForm& b) {
        return a.panel_bytes() >= b.panel_bytes() ? a : b;
    }
};

/// gate, up and down of Experts and ExpertRows, which both have them from input 3 on.
struct FeedForward {
    FeedForward(const OpCall& c, const Worker& worker)
        : call(c), kernels(worker.kernels), gate{c.in[3], bias(6)}, up{c.in[4], bias(7)}, down{c.in[5], bias(8)} {}

    const TensorView* bias(size_t i) const { return call.param<ExpertsParams>().has_bias ? &call.in[i] : nullptr; }
    ActivationForm x_form() const { return {kernels, gate.weight.dtype, gate.n_in()}; }
    ActivationForm up_form() const { return {kernels, up.weight.dtype, up.n_in()}; }
    ActivationForm h_form() const { return {kernels, down.weight.dtype, down.n_in()}; }

    FeedForwardScratch take_scratch(const Choice& choice, Scratch& scratch, int n_threads) const {
        return FeedForwardScratch(scratch, call.in[0].shape[0], choice.n_pairs(), choice.n_expert(), gate.n_out(),
                                  x_form(), up_form(), h_form(), n_threads);
    }
    /// Groups the pairs and converts x.
    void prepare(const Choice& choice, Scratch& scratch, Worker& worker) const noexcept;
    /// Rows of all pairs into rows [n_pairs, n_embd].
    void run(const Choice& choice, Scratch& scratch, float* rows, Worker& worker) const noexcept;
    /// h = swiglu(gate · x, up · x) for 32-row blocks [begin, end) of one expert, already in the form down reads.
    void first_half(int64_t e, int64_t begin, int64_t end, const Choice& choice, const FeedForwardScratch& s,
                    Worker& worker) const noexcept;
    void activate(int64_t e, int64_t begin, int64_t end, const Choice& choice,
                  const FeedForwardScratch& s) const noexcept;

    const OpCall& call;
    const CpuKernels& kernels;
    Stack gate, up, down;
};

void FeedForward::first_half(int64_t e, int64_t begin, int64_t end, const Choice& choice, const FeedForwardScratch& s,
                             Worker& worker) const noexcept {
    const auto token_of_pair = [&](int64_t pair) { return pair / choice.k(); };
    const float* values = call.in[0].as<const float>();
    const int64_t last_tile = std::min(2 * end, gate.n_row_tiles());
    multiply_expert(gate, e, s.groups, s.x, values, token_of_pair, s.x_panels, s.gate, 2 * begin, last_tile, worker);
    multiply_expert(up, e, s.groups, up_form() == x_form() ? s.x : s.x_up, values, token_of_pair, s.x_panels, s.up,
                    2 * begin, last_tile, worker);
    activate(e, begin, end, choice, s);
}

void FeedForward::activate(int64_t e, int64_t begin, int64_t end, const Choice& choice,
                           const FeedForwardScratch& s) const noexcept {
    const SwiGLUParams& p = call.param<ExpertsParams>().activation;
    const int64_t n_ff = gate.n_out(), first = kBlock * begin, n = std::min(kBlock * end, n_ff) - first;
    const std::span<const int32_t> pairs = s.groups.pairs_of(e);
    const ColumnForm as = s.h.form.columns(static_cast<int64_t>(pairs.size()));
    const bool grouped = as != ColumnForm::Rows;
    for (size_t c = 0; c < pairs.size(); ++c) {
        const int64_t pair = pairs[c], token = pair / choice.k();
        float* g = s.gate + pair * n_ff;
        kernels.swiglu(g + first, s.up + pair * n_ff + first, g + first, n, {p.alpha, p.clamp, p.up_offset});
        std::byte* row = s.h.rows + pair * s.h.form.row_bytes();
        if (grouped)
            row = reinterpret_cast<std::byte*>(s.h.groups_of(s.groups, e) +
                                               group_block(static_cast<int64_t>(c), s.h.form.n_blocks()));
        s.h.form.convert(g, begin, end, row, kernels, *call.status, token, as);
    }
    if (grouped)
        clear_group_end(s.h.groups_of(s.groups, e), static_cast<int64_t>(pairs.size()), s.h.form.n_blocks(), begin,
                        end);
}

void FeedForward::prepare(const Choice& choice, Scratch& scratch, Worker& worker) const noexcept {
    const FeedForwardScratch s = take_scratch(choice, scratch, worker.team.n_threads());
    const auto token_of_pair = [&](int64_t pair) { return pair / choice.k(); };
    group_pairs(choice, s.groups, call, worker);
    for (const ExpertColumns* x : {&s.x, &s.x_up}) {
        if (x == &s.x_up && up_form() == x_form()) break;
        convert_chosen(x->form, call.in[0], choice, s.groups, x->rows, call, worker);
        worker.team.barrier();
        gather_columns(*x, call.in[0].as<const float>(), s.groups, token_of_pair, worker);
    }
}

void FeedForward::run(const Choice& choice, Scratch& scratch, float* rows, Worker& worker) const noexcept {
    const FeedForwardScratch s = take_scratch(choice, scratch, worker.team.n_threads());
    const int64_t least = *s.groups.n_grouped > 0 ? (s.x_panels.n_tiles() + 1) / 2 : 1;
    share_experts(s.groups, ceil_div(gate.n_out(), kBlock), 2 * (gate.tile_bytes() + up.tile_bytes()), least, worker,
                  [&](int64_t e, int64_t begin, int64_t end) { first_half(e, begin, end, choice, s, worker); });
    worker.team.barrier();
    multiply_pairs(
        down, choice, s.groups, s.h, s.gate, [](int64_t pair) { return pair; }, s.h_panels, rows, worker);
}

/// One stacked matrix times rows.
struct ExpertMatmul {
    ExpertMatmul(const OpCall& c, const Worker& worker)
        : call(c),
          stack{c.in[3], c.param<ExpertsParams>().has_bias ? &c.in[4] : nullptr},
          choice{c.in[1], &c.in[2], stack.weight.shape[0]},
          scratch(c.scratch),
          groups(scratch, choice.n_pairs(), choice.n_expert()),
          x(scratch, {worker.kernels, stack.weight.dtype, stack.n_in()}, c.in[0].shape.n_rows(), choice.n_pairs(),
            choice.n_expert()),
          panels(scratch, x.form, choice.n_pairs(), worker.team.n_threads()) {}

    int64_t row_of_pair(int64_t pair) const { return call.in[0].shape.rank() == 3 ? pair : pair / choice.k(); }
    void prepare(Worker& worker) const noexcept {
        group_pairs(choice, groups, call, worker);
        convert_chosen(x.form, call.in[0], choice, groups, x.rows, call, worker);
        worker.team.barrier();
        gather_columns(
            x, call.in[0].as<const float>(), groups, [&](int64_t pair) { return row_of_pair(pair); }, worker);
    }
    void run(Worker& worker) const noexcept {
        multiply_pairs(
            stack, choice, groups, x, call.in[0].as<const float>(), [&](int64_t pair) { return row_of_pair(pair); },
            panels, call.out[0].as<float>(), worker);
    }

    const OpCall& call;
    Stack stack;
    Choice choice;
    Scratch scratch;
    Groups groups;
    ExpertColumns x;
    PanelScratch panels;
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
    const FeedForward expert(call, worker);
    Scratch scratch(call.scratch);
    expert.prepare({call.in[1], &call.in[2], call.in[3].shape[0]}, scratch, worker);
}

void expert_rows_heavy(const OpCall& call, Worker& worker) noexcept {
    const FeedForward expert(call, worker);
    Scratch scratch(call.scratch);
    expert.run({call.in[1], &call.in[2], call.in[3].shape[0]}, scratch, call.out[0].as<float>(), worker);
}

void experts_light(const OpCall& call, Worker& worker) noexcept {
    const FeedForward expert(call, worker);
    const Choice choice{call.in[1], nullptr, call.in[3].shape[0]};
    Scratch scratch(call.scratch);
    scratch.take<float>(choice.n_pairs() * call.in[0].shape[1]);
    expert.prepare(choice, scratch, worker);
}

void experts_heavy(const OpCall& call, Worker& worker) noexcept {
    const FeedForward expert(call, worker);
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

void expert_matmul_light(const OpCall& call, Worker& worker) noexcept { ExpertMatmul(call, worker).prepare(worker); }
void expert_matmul_heavy(const OpCall& call, Worker& worker) noexcept { ExpertMatmul(call, worker).run(worker); }

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

size_t expert_rows_scratch(const Node& node, const TeamKernels& team) {
    const Tensor x = node.inputs[0], ids = node.inputs[1];
    const Tensor gate = node.inputs[3], up = node.inputs[4], down = node.inputs[5];
    // Experts has no slot table: its experts are its slots. Others: slot_of_expert says how many experts there are.
    const Tensor slots = node.op == Op::Experts ? gate : node.inputs[2];
    Scratch scratch(nullptr);
    const FeedForwardScratch used(scratch, x.dim(0), ids.shape().n_elements(), slots.dim(0), gate.dim(1),
                                  ActivationForm(team.kernels, gate.dtype(), gate.dim(2)),
                                  ActivationForm(team.kernels, up.dtype(), up.dim(2)),
                                  ActivationForm(team.kernels, down.dtype(), down.dim(2)), team.n_threads);
    return scratch.used_bytes();
}

size_t experts_scratch(const Node& node, const TeamKernels& team) {
    Scratch scratch(nullptr);
    scratch.take<float>(node.inputs[1].shape().n_elements() * node.inputs[0].dim(1));
    return scratch.used_bytes() + expert_rows_scratch(node, team);
}

size_t expert_matmul_scratch(const Node& node, const TeamKernels& team) {
    const Tensor x = node.inputs[0], ids = node.inputs[1], slots = node.inputs[2], weight = node.inputs[3];
    const int64_t n_pairs = ids.shape().n_elements();
    Scratch scratch(nullptr);
    const Groups groups(scratch, n_pairs, slots.dim(0));
    const ExpertColumns columns(scratch, {team.kernels, weight.dtype(), weight.dim(2)}, x.shape().n_rows(), n_pairs,
                                slots.dim(0));
    const PanelScratch panels(scratch, columns.form, n_pairs, team.n_threads);
    return scratch.used_bytes();
}

}  // namespace ggmlx::cpu
