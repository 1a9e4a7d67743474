#pragma once
// One function per op, run by all threads of the team alike. Each cuts its op into pieces, calls the ISA's kernels on
// them and ends with a barrier. The scratch functions say how many bytes of OpCall::scratch an op wants.

#include "ggmlx/backend/cpu/kernels.h"
#include "ggmlx/backend/cpu/threads.h"
#include "ggmlx/graph/call.h"
#include "ggmlx/graph/graph.h"

namespace ggmlx::cpu {

/// What one thread of the team works with.
struct Worker {
    const CpuKernels& kernels;
    Team& team;
    int index;  ///< of this thread
};

void get_rows(const OpCall& call, Worker& worker) noexcept;
void matmul(const OpCall& call, Worker& worker) noexcept;
void head_matmul(const OpCall& call, Worker& worker) noexcept;
void rms_norm(const OpCall& call, Worker& worker) noexcept;
void add(const OpCall& call, Worker& worker) noexcept;
void mul(const OpCall& call, Worker& worker) noexcept;
void scale(const OpCall& call, Worker& worker) noexcept;
void clamp(const OpCall& call, Worker& worker) noexcept;
void sigmoid_gate(const OpCall& call, Worker& worker) noexcept;
void slice(const OpCall& call, Worker& worker) noexcept;
void concat(const OpCall& call, Worker& worker) noexcept;
void swiglu(const OpCall& call, Worker& worker) noexcept;
void softmax(const OpCall& call, Worker& worker) noexcept;
void top_k(const OpCall& call, Worker& worker) noexcept;
void divide_by_sum(const OpCall& call, Worker& worker) noexcept;
void router(const OpCall& call, Worker& worker) noexcept;
void rope_table(const OpCall& call, Worker& worker) noexcept;
void rope(const OpCall& call, Worker& worker) noexcept;
void cache_append(const OpCall& call, Worker& worker) noexcept;
void attention(const OpCall& call, Worker& worker) noexcept;
void experts(const OpCall& call, Worker& worker) noexcept;
void expert_rows(const OpCall& call, Worker& worker) noexcept;
void expert_matmul(const OpCall& call, Worker& worker) noexcept;
void expert_select(const OpCall& call, Worker& worker) noexcept;
void expert_sum(const OpCall& call, Worker& worker) noexcept;
void copy(const OpCall& call, Worker& worker) noexcept;

size_t matmul_scratch(const Node& node, int n_threads);
size_t head_matmul_scratch(const Node& node, int n_threads);
size_t router_scratch(const Node& node, int n_threads);
size_t attention_scratch(const Node& node, int n_threads);
size_t experts_scratch(const Node& node, int n_threads);
size_t expert_rows_scratch(const Node& node, int n_threads);
size_t expert_matmul_scratch(const Node& node, int n_threads);

}  // namespace ggmlx::cpu
