// Experts that a device deals out to its memory nodes: which ones, and how their bytes get there and back.

#include <fmt/ranges.h>

#include <set>

#include "ggmlx/backend/resident.h"

namespace ggmlx {

void DeviceWeights::Resident::deal_out(int64_t expert, const std::byte* stored) const {
    for (int shard = 0; shard < shards.n_shards; ++shard) cut_shard(shards, shard, stored, shard_of(expert, shard));
}

void DeviceWeights::Resident::collect(int64_t expert, std::byte* stored) const {
    for (int shard = 0; shard < shards.n_shards; ++shard) join_shard(shards, shard, shard_of(expert, shard), stored);
}

std::string DeviceWeights::stay_whole_because(const Node& experts, DeviceId device) const {
    const Tensor gate = experts.inputs[3], up = experts.inputs[4], down = experts.inputs[5];
    for (int64_t e = 0; e < expert_count(down); ++e)
        for (Tensor other : {gate, up})
            if ((placement_[other].device_of(e) == device) != (placement_[down].device_of(e) == device))
                return "gate, up and down of an expert on different devices";
    if (keeps_partial_sums(down.dtype())) return "";
    return fmt::format("{} cannot be cut by 32 columns", name(down.dtype()));
}

void DeviceWeights::mark_dealt_out(Tensor weight, DeviceId device, ShardAxis axis) {
    const bool is_bias = weight.shape().rank() == 2;
    for (Resident& part : residents_[static_cast<size_t>(weight.info().id)])
        if (part.device == device)
            part.shards = {weight.dtype(), is_bias ? 1 : weight.dim(1), weight.dim(-1), axis,
                           devices_[static_cast<size_t>(device)]->n_shards()};
}

std::string DeviceWeights::deal_out_experts(const Graph& graph) {
    int n_whole = 0, n_all = 0;
    std::set<std::string> reasons;
    for (const Node& node : graph.nodes()) {
        if (node.op != Op::Experts) continue;
        for (const Resident& part : residents_[static_cast<size_t>(node.inputs[5].info().id)]) {
            if (devices_[static_cast<size_t>(part.device)]->n_shards() == 1) continue;
            ++n_all;
            if (const std::string reason = stay_whole_because(node, part.device); !reason.empty()) {
                ++n_whole;
                reasons.insert(reason);
                continue;
            }
            mark_dealt_out(node.inputs[3], part.device, ShardAxis::Rows);
            mark_dealt_out(node.inputs[4], part.device, ShardAxis::Rows);
            mark_dealt_out(node.inputs[5], part.device, ShardAxis::Columns);
            if (!std::get<ExpertsParams>(node.params).has_bias) continue;
            mark_dealt_out(node.inputs[6], part.device, ShardAxis::Columns);
            mark_dealt_out(node.inputs[7], part.device, ShardAxis::Columns);
        }
    }
    if (n_whole == 0) return "";
    return fmt::format("{} of {} layers are not dealt out: {}", n_whole, n_all, fmt::join(reasons, ", "));
}

}  // namespace ggmlx
