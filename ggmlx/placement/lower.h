#pragma once
// The first pass of a plan: every experts node becomes parts that each run on one device (graph/expert_parts.h).

#include <memory>
#include <string>
#include <vector>

#include "ggmlx/placement/plan.h"

namespace ggmlx {

struct LoweredGraph {
    std::shared_ptr<Graph> graph;
    std::vector<DeviceId> forced;  ///< per node: the device whose experts it computes, or -1
    std::vector<Plan::SlotTable> slot_tables;
    std::vector<std::string> notes;
};

/// Copies the graph, replacing experts. An expert whose matrices live on one device is computed there as a whole;
/// otherwise gate, up and down become separate nodes, and a note says so. Throws unsupported if an expert's bias lives
/// apart from its matrix.
LoweredGraph lower_experts(const Graph& graph, const Placement& placement, const std::vector<PlanDevice>& devices);

}  // namespace ggmlx
