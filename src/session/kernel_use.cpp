#include "src/session/kernel_use.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "src/session/step_bytes.h"

namespace llm {
namespace {

using ggmlx::DeviceId;
using ggmlx::Op;
using ggmlx::Tensor;

/// The matrices among a node's inputs (graph/op.h).
std::span<const int32_t> matrices_of(const ggmlx::PlanStep& step) {
    const auto inputs = std::span(step.inputs);
    switch (step.op) {
        case Op::Matmul:
        case Op::HeadMatmul:
            return inputs.first(1);
        case Op::Experts:
        case Op::ExpertRows:
            return inputs.subspan(3, 3);
        case Op::ExpertMatmul:
            return inputs.subspan(3, 1);
        default:
            return {};
    }
}

/// Bytes on one device: all, also of a copy made there, or the experts that live there.
uint64_t bytes_on(Tensor weight, DeviceId device, const ggmlx::Home& home) {
    if (!home.is_split()) return stored_bytes(weight);
    const auto n = static_cast<uint64_t>(std::count(home.devices.begin(), home.devices.end(), device));
    return stored_bytes(weight) / home.devices.size() * n;
}

}  // namespace

std::vector<KernelUse> count_kernel_use(const ggmlx::Plan& plan, const ggmlx::Placement& placement) {
    std::vector<KernelUse> uses;
    std::set<std::pair<DeviceId, int32_t>> seen;
    for (const ggmlx::Segment& segment : plan.segments)
        for (const ggmlx::PlanStep& step : segment.steps)
            for (const int32_t value : matrices_of(step)) {
                const Tensor weight = plan.values[static_cast<size_t>(value)].tensor.storage();
                if (weight.kind() != ggmlx::TensorKind::Weight) continue;
                if (!seen.insert({segment.device, weight.info().id}).second) continue;
                auto use = std::find_if(uses.begin(), uses.end(), [&](const KernelUse& u) {
                    return u.device == segment.device && u.dtype == weight.dtype();
                });
                if (use == uses.end()) {
                    uses.emplace_back();
                    use = std::prev(uses.end());
                    use->device = segment.device;
                    use->dtype = weight.dtype();
                }
                ++use->n_tensors;
                use->size_bytes += bytes_on(weight, segment.device, placement[weight]);
            }
    std::stable_sort(uses.begin(), uses.end(), [](const KernelUse& a, const KernelUse& b) {
        return a.device != b.device ? a.device < b.device : a.size_bytes > b.size_bytes;
    });
    return uses;
}

}  // namespace llm
