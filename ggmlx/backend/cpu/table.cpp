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

size_t none(const Node&, int) { return 0; }

constexpr std::array<OpRow, kOpCount> kRows = {{
    {Op::GetRows, weights_supported<0>, none, get_rows},
    {Op::RmsNorm, always, none, rms_norm},
    {Op::Matmul, weights_supported<0>, matmul_scratch, matmul},
    {Op::HeadMatmul, weights_supported<0>, head_matmul_scratch, head_matmul},
    {Op::Add, always, none, add},
    {Op::Mul, always, none, mul},
    {Op::Scale, always, none, scale},
    {Op::Clamp, always, none, clamp},
    {Op::SigmoidGate, always, none, sigmoid_gate},
    {Op::Slice, always, none, slice},
    {Op::Concat, always, none, concat},
    {Op::SwiGLU, always, none, swiglu},
    {Op::Softmax, always, none, softmax},
    {Op::TopK, always, none, top_k},
    {Op::DivideBySum, always, none, divide_by_sum},
    {Op::Router, always, router_scratch, router},
    {Op::RopeTable, always, none, rope_table},
    {Op::Rope, always, none, rope},
    {Op::CacheAppend, append_supported, none, cache_append},
    {Op::Attention, attention_supported, attention_scratch, attention},
    {Op::Experts, weights_supported<3, 3>, experts_scratch, experts},
    {Op::ExpertRows, weights_supported<3, 3>, expert_rows_scratch, expert_rows},
    {Op::ExpertMatmul, weights_supported<3>, expert_matmul_scratch, expert_matmul},
    {Op::ExpertSelect, always, none, expert_select},
    {Op::ExpertSum, always, none, expert_sum},
    {Op::Copy, always, none, copy},
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
