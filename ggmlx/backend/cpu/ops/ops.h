#pragma once
// An op's work in one or two parts, each a function that all threads of a team run alike: it cuts the work into pieces,
// which call the ISA's kernels. *_light: work in proportion to the activations, which a single thread does when there
// is little of it. *_heavy: work in proportion to weights or caches, always the whole team's, after the light part. The
// scratch functions say how many bytes of OpCall::scratch an op wants.

#include "ggmlx/backend/cpu/kernels.h"
#include "ggmlx/backend/cpu/threads.h"
#include "ggmlx/graph/call.h"
#include "ggmlx/graph/graph.h"

namespace ggmlx::cpu {

/// What one thread of the team works with.
struct Worker {
    const CpuKernels& kernels;
    Member& team;
};

/// What the size of an op's scratch depends on beside the op.
struct TeamKernels {
    const CpuKernels& kernels;
    int n_threads = 1;
    int n_groups = 1;  ///< Member::n_groups(), at most
};

void get_rows_light(const OpCall& call, Worker& worker) noexcept;
void matmul_light(const OpCall& call, Worker& worker) noexcept;
void matmul_heavy(const OpCall& call, Worker& worker) noexcept;
void head_matmul_light(const OpCall& call, Worker& worker) noexcept;
void head_matmul_heavy(const OpCall& call, Worker& worker) noexcept;
void rms_norm_light(const OpCall& call, Worker& worker) noexcept;
void add_light(const OpCall& call, Worker& worker) noexcept;
void mul_light(const OpCall& call, Worker& worker) noexcept;
void scale_light(const OpCall& call, Worker& worker) noexcept;
void clamp_light(const OpCall& call, Worker& worker) noexcept;
void sigmoid_gate_light(const OpCall& call, Worker& worker) noexcept;
void slice_light(const OpCall& call, Worker& worker) noexcept;
void concat_light(const OpCall& call, Worker& worker) noexcept;
void swiglu_light(const OpCall& call, Worker& worker) noexcept;
void softmax_light(const OpCall& call, Worker& worker) noexcept;
void top_k_light(const OpCall& call, Worker& worker) noexcept;
void divide_by_sum_light(const OpCall& call, Worker& worker) noexcept;
void router_light(const OpCall& call, Worker& worker) noexcept;
void rope_table_light(const OpCall& call, Worker& worker) noexcept;
void rope_light(const OpCall& call, Worker& worker) noexcept;
void cache_append_light(const OpCall& call, Worker& worker) noexcept;
void attention_heavy(const OpCall& call, Worker& worker) noexcept;
void experts_light(const OpCall& call, Worker& worker) noexcept;
void experts_heavy(const OpCall& call, Worker& worker) noexcept;
void expert_rows_light(const OpCall& call, Worker& worker) noexcept;
void expert_rows_heavy(const OpCall& call, Worker& worker) noexcept;
void expert_matmul_light(const OpCall& call, Worker& worker) noexcept;
void expert_matmul_heavy(const OpCall& call, Worker& worker) noexcept;
void expert_select_light(const OpCall& call, Worker& worker) noexcept;
void expert_sum_light(const OpCall& call, Worker& worker) noexcept;
void copy_light(const OpCall& call, Worker& worker) noexcept;

size_t matmul_scratch(const Node& node, const TeamKernels& team);
size_t head_matmul_scratch(const Node& node, const TeamKernels& team);
size_t router_scratch(const Node& node, const TeamKernels& team);
size_t attention_scratch(const Node& node, const TeamKernels& team);
size_t experts_scratch(const Node& node, const TeamKernels& team);
size_t expert_rows_scratch(const Node& node, const TeamKernels& team);
size_t expert_matmul_scratch(const Node& node, const TeamKernels& team);

}  // namespace ggmlx::cpu
