#pragma once
// Op -> what the CPU backend does with it. One row per op, `supports` beside the work, so that "can you?" and "do it"
// cannot drift apart. The table is complete: what no other device supports runs here.

#include "ggmlx/backend/cpu/ops/ops.h"

namespace ggmlx::cpu {

struct OpRow {
    Op op;
    /// Whether there are kernels for the dtypes of a node; shapes never matter.
    bool (*supports)(const Node& node);
    size_t (*scratch_bytes)(const Node& node, const TeamSize& team);
    /// Values that the light part works on.
    int64_t (*light_values)(const OpCall& call);
    /// The two parts (ops.h); either may be null.
    void (*light)(const OpCall& call, Worker& worker) noexcept;
    void (*heavy)(const OpCall& call, Worker& worker) noexcept;
};

const OpRow& row(Op op);

}  // namespace ggmlx::cpu
