#pragma once
// The devices of this machine that an engine can use, and where the tensors of one model go on them.

#include <memory>
#include <string>
#include <vector>

#include "ggmlx/backend/backend.h"
#include "ggmlx/backend/cpu/numa.h"
#include "ggmlx/placement/rules.h"
#include "src/kv/cache.h"

namespace llm {

struct DeviceOptions {
    int n_threads = 0;  ///< of the cpu; 0: one per usable physical core
    std::string isa{};  ///< of the cpu: "scalar", "avx2" …; empty: the best, or what GGMLX_ISA says
    bool pin = true;    ///< threads of the cpu stay on their cores
    ggmlx::NumaPolicy numa = ggmlx::NumaPolicy::Off;
    bool cards = true;       ///< use graphics cards
    bool fast_bf16 = false;  ///< of the cpu: products in bf16, faster and less exact
};

/// "cpu", "cuda0" and so on for the cards of this machine, then "ref0" and "ref1", which run the reference
/// implementations in memory of their own: slow, meant for tests of placement. The first one is where everything goes
/// that no rule moves.
std::vector<std::unique_ptr<ggmlx::Backend>> make_devices(const DeviceOptions& options);

/// Homes by the rules; what no rule decides is on device 0, except that a layer's cache lives beside its
/// KvLayer::home. Biases of experts always live with their matrices, whatever rules say of them: an expert is computed
/// in one place. Errors are those of ggmlx::place.
ggmlx::Placement place_model(const ggmlx::TensorSet& tensors, std::span<const KvLayer> layers,
                             std::span<const ggmlx::PlacementRule> rules, std::span<const std::string> device_names);

}  // namespace llm
