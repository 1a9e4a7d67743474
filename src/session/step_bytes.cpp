#include "src/session/step_bytes.h"

#include <algorithm>
#include <set>

namespace llm {

using ggmlx::Node;
using ggmlx::Op;
using ggmlx::Tensor;

uint64_t stored_bytes(Tensor t) { return static_cast<uint64_t>(ggmlx::storage_bytes(t.dtype(), t.shape())); }

namespace {

bool is_stacked_expert(Tensor t) { return t.info().role == ggmlx::Role::Expert; }

uint64_t share_of(Tensor t, int64_t used) {
    const int64_t all = t.dim(0);
    return stored_bytes(t) / static_cast<uint64_t>(all) * static_cast<uint64_t>(std::min(used, all));
}

/// cache: [n_blocks, n_head_kv, block_len, head_dim]
uint64_t bytes_per_position(Tensor cache) {
    return stored_bytes(cache) / static_cast<uint64_t>(cache.dim(0) * cache.dim(2));
}

}  // namespace

uint64_t weight_bytes(const ggmlx::Graph& graph) {
    uint64_t bytes = 0;
    std::set<int32_t> seen;
    for (const Node& node : graph.nodes())
        for (Tensor input : node.inputs) {
            const Tensor t = input.storage();
            if (t.kind() != ggmlx::TensorKind::Weight) continue;
            if (node.op == Op::GetRows) {
                bytes += share_of(t, node.outputs[0].dim(0));
            } else if (seen.insert(t.info().id).second) {
                const bool chosen = node.op == Op::Experts && is_stacked_expert(t);
                bytes += chosen ? share_of(t, node.inputs[1].dim(0) * node.inputs[1].dim(1)) : stored_bytes(t);
            }
        }
    return bytes;
}

uint64_t cache_bytes(const ggmlx::Graph& graph, int64_t depth) {
    uint64_t bytes = 0;
    for (const Node& node : graph.nodes()) {
        if (node.op != Op::Attention) continue;
        const auto& attention = std::get<ggmlx::AttentionParams>(node.params);
        const int64_t n_read = attention.window > 0 ? std::min<int64_t>(depth, attention.window) : depth;
        const Tensor k = node.inputs[1].storage(), v = node.inputs[2].storage();
        const uint64_t row_bytes = bytes_per_position(k) + (v == k ? 0 : bytes_per_position(v));
        bytes += row_bytes * static_cast<uint64_t>(n_read);
    }
    return bytes;
}

}  // namespace llm
