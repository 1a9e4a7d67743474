// The mixture: each expert's row, and the sum of rows. Experts, ExpertRows and ExpertMatmul compute rows by the same
// functions, so cutting the op cannot change a bit.

#include <algorithm>
#include <numeric>
#include <vector>

#include "ggmlx/reference/kernels.h"
#include "ggmlx/reference/matrix.h"

namespace ggmlx::reference {
namespace {

/// One matrix of a stack of experts with its optional bias.
struct Stack {
    const TensorView& weight;
    const TensorView* bias;

    int64_t n_slots() const { return weight.shape[0]; }
    int64_t n_out() const { return weight.shape[1]; }

    /// y = weight[slot] · x (+ bias[slot])
    void multiply_row(int64_t slot, const float* x, float* y, RowFaults faults) const {
        const StoredMatrix m{weight.data + slot * weight.slot_stride, weight.dtype, n_out(), weight.shape[2]};
        multiply(m, x, 1, y, faults);
        if (!bias) return;
        const auto* b = reinterpret_cast<const float*>(bias->data + slot * bias->slot_stride);
        for (int64_t i = 0; i < n_out(); ++i) y[i] = y[i] + b[i];
    }
};

/// gate, up and down of Experts and ExpertRows, which both have them from input 3 on.
struct FeedForward {
    explicit FeedForward(const OpCall& call)
        : params(call.param<ExpertsParams>()),
          gate{call.in[3], bias(call, 6)},
          up{call.in[4], bias(call, 7)},
          down{call.in[5], bias(call, 8)},
          gate_row(static_cast<size_t>(gate.n_out())),
          up_row(gate_row.size()) {}

    /// y = down · swiglu(gate · x, up · x) of the expert in a slot
    void row(int64_t slot, const float* x, float* y, RowFaults faults) {
        gate.multiply_row(slot, x, gate_row.data(), faults);
        up.multiply_row(slot, x, up_row.data(), faults);
        for (size_t i = 0; i < gate_row.size(); ++i)
            gate_row[i] = swiglu_value(gate_row[i], up_row[i], params.activation);
        down.multiply_row(slot, gate_row.data(), y, faults);
    }

    static const TensorView* bias(const OpCall& call, size_t i) {
        return call.param<ExpertsParams>().has_bias ? &call.in[i] : nullptr;
    }

    const ExpertsParams& params;
    Stack gate, up, down;
    std::vector<float> gate_row, up_row;
};

/// The slot of expert `id` in a table, -1 if it has none. What lies outside its table is reported and has none.
int64_t find_slot(const TensorView& slots, int32_t id, int64_t n_slots, RowFaults faults) {
    if (id == -1) return -1;
    const bool is_expert = id >= 0 && id < slots.shape[0];
    const int32_t slot = is_expert ? slots.as<const int32_t>()[id] : -1;
    if (is_expert && slot >= -1 && slot < n_slots) return slot;
    faults.status->report(Fault::BadIndex, faults.first_row);
    return -1;
}

/// Calls f(token, index of the row, id) for every token and slot of ids [n_tokens, k].
template <class F>
void for_each_choice(const TensorView& ids, F f) {
    const int64_t k = ids.shape[1], n = ids.shape.n_elements();
    for (int64_t i = 0; i < n; ++i) f(i / k, i, ids.as<const int32_t>()[i]);
}

/// y = y + (weight · row), the product rounded
void add_weighted(float weight, const float* row, int64_t n, float* y) {
    for (int64_t i = 0; i < n; ++i) y[i] = y[i] + weight * row[i];
}

/// The row `index` of the first device that has expert `id`; parts are (slots, rows) from input `first` on. Null for id
/// -1, and for an id that no device has, which is reported.
const float* find_row(const OpCall& call, size_t first, int32_t id, int64_t index, RowFaults faults) {
    if (id == -1) return nullptr;
    for (size_t i = first; i + 1 < call.in.size(); i += 2) {
        const TensorView &slots = call.in[i], &rows = call.in[i + 1];
        if (id >= 0 && id < slots.shape[0] && slots.as<const int32_t>()[id] >= 0)
            return rows.as<const float>() + index * rows.shape[2];
    }
    faults.status->report(Fault::BadIndex, faults.first_row);
    return nullptr;
}

}  // namespace

void experts(const OpCall& call) {
    const int64_t n_embd = call.in[0].shape[1];
    const float *x = call.in[0].as<const float>(), *weights = call.in[2].as<const float>();
    float* y = call.out[0].as<float>();
    FeedForward expert(call);
    std::vector<int32_t> identity(static_cast<size_t>(expert.gate.n_slots()));
    std::iota(identity.begin(), identity.end(), 0);
    const TensorView slots{reinterpret_cast<std::byte*>(identity.data()), DType::I32, {expert.gate.n_slots()}};
    std::vector<float> row(static_cast<size_t>(n_embd));
    std::fill(y, y + call.out[0].shape.n_elements(), 0.0f);
    for_each_choice(call.in[1], [&](int64_t t, int64_t i, int32_t id) {
        const RowFaults faults{call.status, t};
        const int64_t slot = find_slot(slots, id, expert.gate.n_slots(), faults);
        if (slot < 0) return;
        expert.row(slot, x + t * n_embd, row.data(), faults);
        add_weighted(weights[i], row.data(), n_embd, y + t * n_embd);
    });
}

void expert_rows(const OpCall& call) {
    const int64_t n_embd = call.in[0].shape[1];
    const float* x = call.in[0].as<const float>();
    float* rows = call.out[0].as<float>();
    FeedForward expert(call);
    std::fill(rows, rows + call.out[0].shape.n_elements(), 0.0f);
    for_each_choice(call.in[1], [&](int64_t t, int64_t i, int32_t id) {
        const RowFaults faults{call.status, t};
        const int64_t slot = find_slot(call.in[2], id, expert.gate.n_slots(), faults);
        if (slot >= 0) expert.row(slot, x + t * n_embd, rows + i * n_embd, faults);
    });
}

void expert_matmul(const OpCall& call) {
    const TensorView& x = call.in[0];
    const Stack stack{call.in[3], call.param<ExpertsParams>().has_bias ? &call.in[4] : nullptr};
    const int64_t n_in = x.shape[-1], n_out = stack.n_out();
    const bool has_row_per_slot = x.shape.rank() == 3;
    float* rows = call.out[0].as<float>();
    std::fill(rows, rows + call.out[0].shape.n_elements(), 0.0f);
    for_each_choice(call.in[1], [&](int64_t t, int64_t i, int32_t id) {
        const RowFaults faults{call.status, t};
        const int64_t slot = find_slot(call.in[2], id, stack.n_slots(), faults);
        const float* x_row = x.as<const float>() + (has_row_per_slot ? i : t) * n_in;
        if (slot >= 0) stack.multiply_row(slot, x_row, rows + i * n_out, faults);
    });
}

void expert_select(const OpCall& call) {
    const int64_t n = call.out[0].shape[2];
    float* y = call.out[0].as<float>();
    for_each_choice(call.in[0], [&](int64_t t, int64_t i, int32_t id) {
        const float* row = find_row(call, 1, id, i, {call.status, t});
        if (row)
            std::copy(row, row + n, y + i * n);
        else
            std::fill(y + i * n, y + (i + 1) * n, 0.0f);
    });
}

void expert_sum(const OpCall& call) {
    const int64_t n = call.out[0].shape[1];
    const float* weights = call.in[0].as<const float>();
    float* y = call.out[0].as<float>();
    std::fill(y, y + call.out[0].shape.n_elements(), 0.0f);
    for_each_choice(call.in[1], [&](int64_t t, int64_t i, int32_t id) {
        const float* row = find_row(call, 2, id, i, {call.status, t});
        if (row) add_weighted(weights[i], row, n, y + t * n);
    });
}

}  // namespace ggmlx::reference
