#include "ggmlx/backend/cpu/table.h"

#include <array>

namespace ggmlx::cpu {
namespace {

bool always(const Node&) { return true; }

bool is_weight_type(Tensor t) { return scalar_kernels.matmul[static_cast<size_t>(t.dtype())] != nullptr; }
bool is_cache_type(Tensor t) { return scalar_kernels.unpack_keys[static_cast<size_t>(t.dtype())] != nullptr; }

/// Weights are the inputs [First, First + N).
template <size_t First, size_t N = 1>
bool weights_supported(const Node& node) {
    for (size_t i = First; i < First + N; ++i)
        if (!is_weight_type(node.inputs[i])) return false;
    return true;
}

bool append_supported(const Node& node) { return is_cache_type(node.inputs[0]); }
bool attention_supported(const Node& node) { return is_cache_type(node.inputs[1]) && is_cache_type(node.inputs[2]); }

size_t none(const Node&, const TeamSize&) { return 0; }

/// Values that the light part of a call reads or writes.
template <size_t I>
int64_t of_input(const OpCall& call) {
    return call.in[I].shape.n_elements();
}
int64_t of_output(const OpCall& call) { return call.out[0].shape.n_elements(); }
int64_t of_nothing(const OpCall&) { return 0; }

constexpr std::array<OpRow, kOpCount> kRows = {{
    {Op::GetRows, weights_supported<0>, none, of_output, get_rows_light, nullptr},
    {Op::RmsNorm, always, none, of_output, rms_norm_light, nullptr},
    {Op::Matmul, weights_supported<0>, matmul_scratch, of_input<1>, matmul_light, matmul_heavy},
    {Op::HeadMatmul, weights_supported<0>, head_matmul_scratch, of_input<1>, head_matmul_light, head_matmul_heavy},
    {Op::Add, always, none, of_output, add_light, nullptr},
    {Op::Mul, always, none, of_output, mul_light, nullptr},
    {Op::Scale, always, none, of_output, scale_light, nullptr},
    {Op::Clamp, always, none, of_output, clamp_light, nullptr},
    {Op::SigmoidGate, always, none, of_output, sigmoid_gate_light, nullptr},
    {Op::Slice, always, none, of_output, slice_light, nullptr},
    {Op::Concat, always, none, of_output, concat_light, nullptr},
    {Op::SwiGLU, always, none, of_output, swiglu_light, nullptr},
    {Op::Softmax, always, none, of_output, softmax_light, nullptr},
    {Op::TopK, always, none, of_input<0>, top_k_light, nullptr},
    {Op::DivideBySum, always, none, of_output, divide_by_sum_light, nullptr},
    {Op::Router, always, router_scratch, of_input<0>, router_light, nullptr},
    {Op::RopeTable, always, none, of_output, rope_table_light, nullptr},
    {Op::Rope, always, none, of_output, rope_light, nullptr},
    {Op::CacheAppend, append_supported, none, of_input<1>, cache_append_light, nullptr},
    {Op::Attention, attention_supported, attention_scratch, of_nothing, nullptr, attention_heavy},
    {Op::Experts, weights_supported<3, 3>, experts_scratch, of_input<0>, experts_light, experts_heavy},
    {Op::ExpertRows, weights_supported<3, 3>, expert_rows_scratch, of_input<0>, expert_rows_light, expert_rows_heavy},
    {Op::ExpertMatmul, weights_supported<3>, expert_matmul_scratch, of_input<0>, expert_matmul_light,
     expert_matmul_heavy},
    {Op::ExpertSelect, always, none, of_output, expert_select_light, nullptr},
    {Op::ExpertSum, always, none, of_input<0>, expert_sum_light, nullptr},
    {Op::Copy, always, none, of_output, copy_light, nullptr},
}};

constexpr bool in_order() {
    for (size_t i = 0; i < kRows.size(); ++i)
        if (kRows[i].op != static_cast<Op>(i)) return false;
    return true;
}
static_assert(in_order(), "one row per op, in the order of op.h");

}  // namespace

const OpRow& row(Op op) { return kRows[static_cast<size_t>(op)]; }

}  // namespace ggmlx::cpu
