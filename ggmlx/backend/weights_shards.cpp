// Experts that a device deals out to its memory nodes: which ones, and how their bytes get there and back.

#include "ggmlx/backend/resident.h"

namespace ggmlx {

void DeviceWeights::Resident::deal_out(int64_t expert, const std::byte* stored) const {
    for (int shard = 0; shard < shards.n_shards; ++shard) cut_shard(shards, shard, stored, shard_of(expert, shard));
}

void DeviceWeights::Resident::collect(int64_t expert, std::byte* stored) const {
    for (int shard = 0; shard < shards.n_shards; ++shard) join_shard(shards, shard, shard_of(expert, shard), stored);
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
        const Tensor gate = node.inputs[3], up = node.inputs[4], down = node.inputs[5];
        const bool is_split = !placement_.same_homes(gate, up) || !placement_.same_homes(gate, down);
        const bool by_columns = keeps_partial_sums(down.dtype()),
                   has_bias = std::get<ExpertsParams>(node.params).has_bias;
        for (const Resident& part : residents_[static_cast<size_t>(down.info().id)]) {
            if (devices_[static_cast<size_t>(part.device)]->n_shards() == 1) continue;
            ++n_all;
            n_whole += is_split;
            if (is_split) continue;  // the plan makes separate products of such a node
            mark_dealt_out(gate, part.device, ShardAxis::Rows);
            mark_dealt_out(up, part.device, ShardAxis::Rows);
            mark_dealt_out(down, part.device, by_columns ? ShardAxis::Columns : ShardAxis::Rows);
            if (!has_bias) continue;
            mark_dealt_out(node.inputs[6], part.device, ShardAxis::Columns);
            mark_dealt_out(node.inputs[7], part.device, ShardAxis::Columns);
            if (!by_columns) mark_dealt_out(node.inputs[8], part.device, ShardAxis::Columns);
        }
    }
    if (n_whole == 0) return "";
    return fmt::format("{} of {} layers have gate, up and down on different devices", n_whole, n_all);
}

}  // namespace ggmlx
