// The mixture and its parts: every expert's pairs are the columns of one product.

#include <algorithm>

#include "ggmlx/backend/cpu/ops/expert_stack.h"
#include "ggmlx/backend/cpu/ops/feed_forward.h"

namespace ggmlx::cpu {
namespace {

/// One stacked matrix times rows.
struct ExpertMatmul {
    ExpertMatmul(const OpCall& c, const Worker& worker)
        : call(c),
          stack(rows_of_shard(c.in[3], c.param<ExpertsParams>().has_bias ? &c.in[4] : nullptr, 0)),
          choice{c.in[1], &c.in[2], c.in[3].shape[0]},
          scratch(c.scratch),
          groups(scratch, choice.n_pairs(), choice.n_expert()),
          x(scratch, stack.form(worker.kernels), c.in[0].shape.n_rows(), choice.n_pairs(), choice.n_expert()),
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
        float* y = call.out[0].as<float>();
        clear_unused(groups, choice.n_pairs(), y, stack.n_out, worker);
        multiply_pairs(
            stack, groups, x, call.in[0].as<const float>(), [&](int64_t pair) { return row_of_pair(pair); }, panels, y,
            Among::Team, worker);
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
    prepare_feed_forward(call, {call.in[1], &call.in[2], call.in[3].shape[0]}, Scratch(call.scratch), worker);
}

void expert_rows_heavy(const OpCall& call, Worker& worker) noexcept {
    run_feed_forward(call, {call.in[1], &call.in[2], call.in[3].shape[0]}, Scratch(call.scratch),
                     call.out[0].as<float>(), worker);
}

void experts_light(const OpCall& call, Worker& worker) noexcept {
    const Choice choice{call.in[1], nullptr, call.in[3].shape[0]};
    Scratch scratch(call.scratch);
    scratch.take<float>(choice.n_pairs() * call.in[0].shape[1]);
    prepare_feed_forward(call, choice, scratch, worker);
}

void experts_heavy(const OpCall& call, Worker& worker) noexcept {
    const Choice choice{call.in[1], nullptr, call.in[3].shape[0]};
    const int64_t n = call.in[0].shape[1], k = choice.k();
    Scratch scratch(call.scratch);
    float* rows = scratch.take<float>(choice.n_pairs() * n);
    run_feed_forward(call, choice, scratch, rows, worker);
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

size_t expert_rows_scratch(const Node& node, const TeamKernels& team) { return feed_forward_scratch(node, team); }

size_t experts_scratch(const Node& node, const TeamKernels& team) {
    Scratch scratch(nullptr);
    scratch.take<float>(node.inputs[1].shape().n_elements() * node.inputs[0].dim(1));
    return scratch.used_bytes() + feed_forward_scratch(node, team);
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
