#pragma once
// The second pass of a plan: a device for every node.

#include <string>
#include <vector>

#include "ggmlx/placement/lower.h"

namespace ggmlx {

/// Per node of the lowered graph. Notes are added for nodes that had to leave the device of their weight.
std::vector<DeviceId> assign_devices(const LoweredGraph& lowered, const PlanRequest& request,
                                     std::vector<std::string>& notes);

}  // namespace ggmlx
