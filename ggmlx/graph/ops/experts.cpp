// Routed experts: the op as a model says it, and the parts a plan runs.

#include "ggmlx/graph/expert_parts.h"
#include "ggmlx/graph/ops.h"
#include "ggmlx/graph/ops/checks.h"

namespace ggmlx {
namespace {

/// A stacked weight [n_expert, n_out, n_in]; want_out and want_in are what the other arguments ask for, -1 for
/// anything.
void check_stack(Op op, std::string_view argument, Tensor w, int64_t n_expert, int64_t want_out, int64_t want_in) {
    checks::rank(op, argument, w, 3, "[n_expert, n_out, n_in]");
    checks::weight_dtype(op, argument, w);
    checks::shape(op, argument, w, {n_expert, want_out < 0 ? w.dim(1) : want_out, want_in < 0 ? w.dim(2) : want_in});
}

void check_ids(Op op, Tensor ids, Tensor x) {
    checks::array(op, "ids", ids, DType::I32, 2, "[n_tokens, k]");
    require(ids.dim(0) == x.dim(0), ErrorKind::InvalidArgument, "{}: {} has {} rows but {} has {}", name(op),
            checks::label("ids", ids), ids.dim(0), checks::label("x", x), x.dim(0));
}

/// Checks weights against x [n_tokens, n_embd] and appends them to the inputs of a node. Returns whether biases came.
bool append_weights(Op op, const ExpertWeights& w, Tensor x, std::vector<Tensor>& inputs) {
    checks::rank(op, "gate", w.gate, 3, "[n_expert, n_ff, n_embd]");
    const int64_t n_expert = w.gate.dim(0), n_ff = w.gate.dim(1), n_embd = x.dim(1);
    check_stack(op, "gate", w.gate, n_expert, -1, n_embd);
    check_stack(op, "up", w.up, n_expert, n_ff, n_embd);
    check_stack(op, "down", w.down, n_expert, n_embd, n_ff);
    inputs.insert(inputs.end(), {w.gate, w.up, w.down});
    if (!w.gate_bias && !w.up_bias && !w.down_bias) return false;
    checks::array(op, "gate_bias", w.gate_bias, DType::F32, {n_expert, n_ff});
    checks::array(op, "up_bias", w.up_bias, DType::F32, {n_expert, n_ff});
    checks::array(op, "down_bias", w.down_bias, DType::F32, {n_expert, n_embd});
    inputs.insert(inputs.end(), {w.gate_bias, w.up_bias, w.down_bias});
    return true;
}

/// Checks the parts against ids and each other, appends (slots, rows) of each to the inputs; returns the row length.
int64_t append_parts(Op op, Tensor ids, const std::vector<DeviceRows>& parts, std::vector<Tensor>& inputs) {
    checks::array(op, "ids", ids, DType::I32, 2, "[n_tokens, k]");
    require(!parts.empty(), ErrorKind::InvalidArgument, "{}: there are no rows of any device", name(op));
    for (const DeviceRows& part : parts) {
        checks::array(op, "slots", part.slots, DType::I32, 1, "[n_expert]");
        checks::shape(op, "slots", part.slots, parts[0].slots.shape());
        checks::array(op, "rows", part.rows, DType::F32, 3, "[n_tokens, k, n]");
        checks::shape(op, "rows", part.rows, {ids.dim(0), ids.dim(1), parts[0].rows.dim(2)});
        inputs.insert(inputs.end(), {part.slots, part.rows});
    }
    return parts[0].rows.dim(2);
}

}  // namespace

Tensor experts(Graph& g, const ExpertWeights& w, Tensor x, Tensor ids, Tensor weights, SwiGLUParams activation) {
    checks::array(Op::Experts, "x", x, DType::F32, 2, "[n_tokens, n_embd]");
    check_ids(Op::Experts, ids, x);
    checks::array(Op::Experts, "weights", weights, DType::F32, ids.shape());
    std::vector<Tensor> inputs = {x, ids, weights};
    const bool has_bias = append_weights(Op::Experts, w, x, inputs);
    return g.add_node(Op::Experts, ExpertsParams{activation, has_bias}, std::move(inputs),
                      {{DType::F32, x.shape(), ""}})[0];
}

Tensor expert_rows(Graph& g, const ExpertWeights& w, Tensor x, Tensor ids, Tensor slots, SwiGLUParams activation) {
    checks::array(Op::ExpertRows, "x", x, DType::F32, 2, "[n_tokens, n_embd]");
    check_ids(Op::ExpertRows, ids, x);
    std::vector<Tensor> inputs = {x, ids, slots};
    const bool has_bias = append_weights(Op::ExpertRows, w, x, inputs);
    checks::array(Op::ExpertRows, "slots", slots, DType::I32, Shape{w.gate.dim(0)});
    return g.add_node(Op::ExpertRows, ExpertsParams{activation, has_bias}, std::move(inputs),
                      {{DType::F32, {x.dim(0), ids.dim(1), x.dim(1)}, ""}})[0];
}

Tensor expert_matmul(Graph& g, Tensor weight, Tensor bias, Tensor x, Tensor ids, Tensor slots) {
    constexpr Op op = Op::ExpertMatmul;
    checks::rows(op, "x", x);
    check_ids(op, ids, x);
    if (x.shape().rank() != 2) checks::shape(op, "x", x, {ids.dim(0), ids.dim(1), x.dim(-1)});
    checks::rank(op, "weight", weight, 3, "[n_expert, n_out, n_in]");
    check_stack(op, "weight", weight, weight.dim(0), -1, x.dim(-1));
    checks::array(op, "slots", slots, DType::I32, Shape{weight.dim(0)});
    std::vector<Tensor> inputs = {x, ids, slots, weight};
    if (bias) {
        checks::array(op, "bias", bias, DType::F32, {weight.dim(0), weight.dim(1)});
        inputs.push_back(bias);
    }
    return g.add_node(op, ExpertsParams{{}, bool(bias)}, std::move(inputs),
                      {{DType::F32, {ids.dim(0), ids.dim(1), weight.dim(1)}, ""}})[0];
}

Tensor expert_select(Graph& g, Tensor ids, const std::vector<DeviceRows>& parts) {
    std::vector<Tensor> inputs = {ids};
    const int64_t n = append_parts(Op::ExpertSelect, ids, parts, inputs);
    return g.add_node(Op::ExpertSelect, {}, std::move(inputs), {{DType::F32, {ids.dim(0), ids.dim(1), n}, ""}})[0];
}

Tensor expert_sum(Graph& g, Tensor weights, Tensor ids, const std::vector<DeviceRows>& parts) {
    std::vector<Tensor> inputs = {weights, ids};
    const int64_t n = append_parts(Op::ExpertSum, ids, parts, inputs);
    checks::array(Op::ExpertSum, "weights", weights, DType::F32, ids.shape());
    return g.add_node(Op::ExpertSum, {}, std::move(inputs), {{DType::F32, {ids.dim(0), n}, ""}})[0];
}

Tensor copy(Graph& g, Tensor x) {
    checks::given(Op::Copy, "x", x);
    return g.add_node(Op::Copy, {}, {x}, {{x.dtype(), x.shape(), x.name()}})[0];
}

}  // namespace ggmlx
