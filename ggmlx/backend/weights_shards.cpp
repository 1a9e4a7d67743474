// Experts that a device deals out to its memory nodes: which ones, and how their bytes get there and back.

#include "ggmlx/backend/resident.h"

namespace ggmlx {

void DeviceWeights::Resident::deal_out(int64_t expert, const std::byte* stored) const {
    for (int shard = 0; shard < shards.n_shards; ++shard) cut_shard(shards, shard, stored, shard_of(expert, shard));
}

void DeviceWeights::Resident::collect(int64_t expert, std::byte* stored) const {
    for (int shard = 0; shard < shards.n_shards; ++shard) join_shard(shards, shard, shard_of(expert, shard), stored);
}

bool DeviceWeights::is_split(const Node& experts, DeviceId device) const {
    const Tensor gate = experts.inputs[3], up = experts.inputs[4], down = experts.inputs[5];
    for (int64_t e = 0; e < expert_count(down); ++e)
        for (Tensor other : {gate, up})
            if ((placement_[other].device_of(e) == device) != (placement_[down].device_of(e) == device)) return true;
    return false;
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
    for (const Node& node : graph.nodes()) {
        if (node.op != Op::Experts) continue;
        for (const Resident& part : residents_[static_cast<size_t>(node.inputs[5].info().id)]) {
            if (devices_[static_cast<size_t>(part.device)]->n_shards() == 1) continue;
            ++n_all;
            if (is_split(node, part.device)) {
                ++n_whole;
                continue;
            }
            const bool by_columns = keeps_partial_sums(node.inputs[5].dtype());
            mark_dealt_out(node.inputs[3], part.device, ShardAxis::Rows);
            mark_dealt_out(node.inputs[4], part.device, ShardAxis::Rows);
            mark_dealt_out(node.inputs[5], part.device, by_columns ? ShardAxis::Columns : ShardAxis::Rows);
            if (!std::get<ExpertsParams>(node.params).has_bias) continue;
            mark_dealt_out(node.inputs[6], part.device, ShardAxis::Columns);
            mark_dealt_out(node.inputs[7], part.device, ShardAxis::Columns);
            if (!by_columns) mark_dealt_out(node.inputs[8], part.device, ShardAxis::Columns);
        }
    }
    if (n_whole == 0) return "";
    return fmt::format("{} of {} layers have gate, up and down on different devices", n_whole, n_all);
}

}  // namespace ggmlx
