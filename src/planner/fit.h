#pragma once
// Fit: a memory budget becomes placement rules. The user's rules stay as they are; the rest is placed in order of
// benefit per byte: everything but the experts, with cache and workspace, then experts, whole layers first.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ggmlx/backend/backend.h"
#include "src/session/blueprint.h"

namespace llm {

struct FitOptions {
    bool enabled = true;             ///< --fit: otherwise what no rule moves goes to the card, fit or not
    std::optional<uint64_t> vram{};  ///< bytes of the card that may be used; default: what is free, less a margin
    std::optional<int64_t> n_gpu_layers{};  ///< -ngl: so many layers, the last ones, are on the card
    bool cpu_moe = false;                   ///< --cpu-moe: all routed experts stay on the cpu
    int64_t n_cpu_moe = 0;                  ///< --n-cpu-moe: those of the first so many layers do
};

/// Rules that follow the user's own (options.rules). None if there is no card among the devices. Throws out_of_memory
/// if not even one layer fits, with the numbers; errors of Blueprint.
std::vector<ggmlx::PlacementRule> fit(const ModelConfig& config, const Architecture& arch,
                                      const ggmlx::TensorSet& weights, const EngineOptions& options,
                                      std::span<const std::unique_ptr<ggmlx::Backend>> devices, const FitOptions& how);

}  // namespace llm
