#include "ggmlx/backend/cuda/table.h"

#include <array>

namespace ggmlx::cuda {
namespace {

bool always(const Node&) { return true; }
bool never(const Node&) { return false; }
size_t none(const Node&) { return 0; }

bool is_weight_type(Tensor t) { return t.dtype() != DType::I32 && t.dtype() != DType::F8_E4M3; }

/// Weights are the inputs [First, First + N).
template <size_t First, size_t N = 1>
bool weights_supported(const Node& node) {
    for (size_t i = First; i < First + N; ++i)
        if (!is_weight_type(node.inputs[i])) return false;
    return true;
}

bool append_supported(const Node& node) { return is_cache_type(node.inputs[0].dtype()); }
bool attention_supported(const Node& node) {
    constexpr int64_t kMaxDims = 576, kMaxValueDims = 512;
    const int64_t wanted = std::get<AttentionParams>(node.params).head_dim_v;
    const int64_t n_values = wanted > 0 ? wanted : node.inputs[2].dim(3);
    return is_cache_type(node.inputs[1].dtype()) && is_cache_type(node.inputs[2].dtype()) &&
           node.inputs[0].dim(2) <= kMaxDims && n_values <= kMaxValueDims;
}
bool rope_table_supported(const Node& node) {
    return static_cast<int64_t>(std::get<RopeTableParams>(node.params).inv_freq.size()) <= kMaxRopePairs;
}
bool router_supported(const Node& node) {
    return node.inputs[0].dim(1) <= kMaxExperts && std::get<RouterParams>(node.params).n_groups <= kMaxExpertGroups;
}
bool top_k_supported(const Node& node) { return node.inputs[0].dim(1) <= kMaxExperts; }
template <size_t First>
bool parts_supported(const Node& node) {
    return (node.inputs.size() - First) / 2 <= kMaxParts;
}

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
    {Op::TopK, top_k_supported, none, top_k},
    {Op::DivideBySum, always, none, divide_by_sum},
    {Op::Router, router_supported, none, router},
    {Op::RopeTable, rope_table_supported, none, rope_table},
    {Op::Rope, always, none, rope},
    {Op::CacheAppend, append_supported, none, cache_append},
    {Op::Attention, attention_supported, attention_scratch, attention},
    {Op::Experts, never, none, nullptr},  // plans always run its parts
    {Op::ExpertRows, weights_supported<3, 3>, expert_rows_scratch, expert_rows},
    {Op::ExpertMatmul, weights_supported<3>, expert_matmul_scratch, expert_matmul},
    {Op::ExpertSelect, parts_supported<1>, none, expert_select},
    {Op::ExpertSum, parts_supported<2>, none, expert_sum},
    {Op::Copy, always, none, copy},
}};

constexpr bool is_in_order() {
    for (size_t i = 0; i < kRows.size(); ++i)
        if (kRows[i].op != static_cast<Op>(i)) return false;
    return true;
}
static_assert(is_in_order());

}  // namespace

const OpRow& row(Op op) { return kRows[static_cast<size_t>(op)]; }

}  // namespace ggmlx::cuda
