#pragma once
// What each op launches, with the meaning of reference.h, and the temporary memory it asks for. No CUDA type but the
// stream in Launch appears here.

#include "ggmlx/backend/cuda/call_args.h"
#include "ggmlx/graph/graph.h"

namespace ggmlx::cuda {

void get_rows(const OpCall& call, const Launch& launch);
void rms_norm(const OpCall& call, const Launch& launch);
void matmul(const OpCall& call, const Launch& launch);
void head_matmul(const OpCall& call, const Launch& launch);
void add(const OpCall& call, const Launch& launch);
void mul(const OpCall& call, const Launch& launch);
void scale(const OpCall& call, const Launch& launch);
void clamp(const OpCall& call, const Launch& launch);
void sigmoid_gate(const OpCall& call, const Launch& launch);
void slice(const OpCall& call, const Launch& launch);
void concat(const OpCall& call, const Launch& launch);
void swiglu(const OpCall& call, const Launch& launch);
void softmax(const OpCall& call, const Launch& launch);
void top_k(const OpCall& call, const Launch& launch);
void divide_by_sum(const OpCall& call, const Launch& launch);
void router(const OpCall& call, const Launch& launch);
void rope_table(const OpCall& call, const Launch& launch);
void rope(const OpCall& call, const Launch& launch);
void cache_append(const OpCall& call, const Launch& launch);
void attention(const OpCall& call, const Launch& launch);
void expert_rows(const OpCall& call, const Launch& launch);
void expert_matmul(const OpCall& call, const Launch& launch);
void expert_select(const OpCall& call, const Launch& launch);
void expert_sum(const OpCall& call, const Launch& launch);
/// Either side may be host memory that the device reaches.
void copy(const OpCall& call, const Launch& launch);

/// Most frequencies of a rope_table, and most experts and groups of them that a router chooses from.
inline constexpr int64_t kMaxRopePairs = 256, kMaxExperts = 1024, kMaxExpertGroups = 64;
/// Most parts of expert_sum and expert_select: devices that hold experts of one layer.
inline constexpr size_t kMaxParts = 16;

size_t matmul_scratch(const Node& node);
size_t head_matmul_scratch(const Node& node);
size_t attention_scratch(const Node& node);
size_t expert_rows_scratch(const Node& node);
size_t expert_matmul_scratch(const Node& node);

}  // namespace ggmlx::cuda
