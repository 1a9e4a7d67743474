#pragma once
// What a blueprint comes to, as plain numbers and texts for `ggmlx plan`: where every tensor goes and which rule says
// so, bytes per device, how often work changes devices, and hints about rules that cost more than they bring.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ggmlx/backend/backend.h"
#include "src/session/blueprint.h"

namespace llm {

/// A weight or cache tensor; a stacked one whose experts are split has a place per device.
struct TensorPlace {
    std::string tensor, type, device;
    std::string rule;       ///< as the user wrote it; empty: no rule matched
    int64_t n_experts = 0;  ///< of a split tensor: how many are on this device; 0: the whole tensor is
    uint64_t size_bytes = 0;
};

struct RuleUse {
    std::string rule;
    std::string device;
    int64_t n_matched = 0;    ///< tensors whose name it matches
    int64_t n_decided = 0;    ///< of these, tensors no earlier rule had decided
    uint64_t size_bytes = 0;  ///< of the decided
};

struct DevicePlan {
    std::string name, description;
    uint64_t dense_bytes = 0;      ///< weights that every token uses
    uint64_t expert_bytes = 0;     ///< routed experts
    uint64_t cache_bytes = 0;      ///< KV cache for the context and number of sequences
    uint64_t workspace_bytes = 0;  ///< intermediate values of the largest step
    uint64_t free_bytes = 0;       ///< of the device now
    uint64_t total_bytes() const { return dense_bytes + expert_bytes + cache_bytes + workspace_bytes; }
};

struct PlanReport {
    std::vector<TensorPlace> tensors;
    std::vector<RuleUse> rules;
    std::vector<DevicePlan> devices;
    int64_t n_ctx = 0;
    int64_t max_batch = 0;
    int32_t switches_per_token = 0;  ///< hand-overs between devices in a step of one token
    int32_t switches_per_batch = 0;  ///< and in the largest step
    std::vector<std::string> notes;  ///< of the plans
    std::vector<std::string> hints;  ///< rules that move less than 1 MiB of tensors whose results are used elsewhere
};

/// Plans the steps of one token and of the largest batch; loads and allocates nothing.
PlanReport plan_report(const Blueprint& blueprint, std::span<const ggmlx::PlacementRule> rules,
                       std::span<ggmlx::Backend* const> devices);

}  // namespace llm
