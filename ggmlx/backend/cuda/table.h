#pragma once
// Op -> what the CUDA backend does with it, as far as it goes. `supports` stands beside the work, so that "can you?"
// and "do it" cannot drift apart.

#include "ggmlx/backend/cuda/ops.h"

namespace ggmlx::cuda {

struct OpRow {
    Op op;
    bool (*supports)(const Node& node);
    size_t (*scratch_bytes)(const Node& node);
    void (*run)(const OpCall& call, const Launch& launch);  ///< null: not here
};

const OpRow& row(Op op);

}  // namespace ggmlx::cuda
