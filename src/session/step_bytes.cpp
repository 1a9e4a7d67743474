#include "src/session/step_bytes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

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

/// Calls f(node, weight, bytes) for every weight that the graph reads, once each.
template <class F>
void for_each_read(const ggmlx::Graph& graph, F f) {
    std::set<int32_t> seen;
    for (const Node& node : graph.nodes())
        for (Tensor input : node.inputs) {
            const Tensor t = input.storage();
            if (t.kind() != ggmlx::TensorKind::Weight) continue;
            if (node.op == Op::GetRows) {
                f(node, t, share_of(t, node.outputs[0].dim(0)));
            } else if (seen.insert(t.info().id).second) {
                const bool chosen = node.op == Op::Experts && is_stacked_expert(t);
                f(node, t, chosen ? share_of(t, node.inputs[1].dim(0) * node.inputs[1].dim(1)) : stored_bytes(t));
            }
        }
}

/// Calls f(node, cache, bytes) for every cache that the graph's attention reads.
template <class F>
void for_each_cache_read(const ggmlx::Graph& graph, int64_t depth, F f) {
    for (const Node& node : graph.nodes()) {
        if (node.op != Op::Attention) continue;
        const auto& attention = std::get<ggmlx::AttentionParams>(node.params);
        const int64_t n_read = attention.window > 0 ? std::min<int64_t>(depth, attention.window) : depth;
        const Tensor k = node.inputs[1].storage(), v = node.inputs[2].storage();
        f(node, k, bytes_per_position(k) * static_cast<uint64_t>(n_read));
        if (v != k) f(node, v, bytes_per_position(v) * static_cast<uint64_t>(n_read));
    }
}

}  // namespace

uint64_t weight_bytes(const ggmlx::Graph& graph) {
    uint64_t bytes = 0;
    for_each_read(graph, [&](const Node&, Tensor, uint64_t n) { bytes += n; });
    return bytes;
}

uint64_t cache_bytes(const ggmlx::Graph& graph, int64_t depth) {
    uint64_t bytes = 0;
    for_each_cache_read(graph, depth, [&](const Node&, Tensor, uint64_t n) { bytes += n; });
    return bytes;
}

double least_seconds(const ggmlx::Graph& graph, const ggmlx::Placement& placement, std::span<const double> rates,
                     int64_t depth) {
    struct Layer {
        double alone = 0;                          ///< seconds one after the other
        std::map<ggmlx::DeviceId, double> beside;  ///< seconds at the same time
    };
    std::map<std::string, Layer> layers;
    const auto add = [&](const Node& node, Tensor t, uint64_t bytes) {
        const ggmlx::Home& home = placement[t];
        const bool is_beside = t.info().role == ggmlx::Role::Expert || t.info().role == ggmlx::Role::SharedExpert;
        for (ggmlx::DeviceId d : home.devices) {
            const double rate = rates[static_cast<size_t>(d)];
            if (rate <= 0) continue;
            const double seconds = static_cast<double>(bytes) / static_cast<double>(home.devices.size()) / rate;
            (is_beside ? layers[node.scope].beside[d] : layers[node.scope].alone) += seconds;
        }
    };
    for_each_read(graph, add);
    for_each_cache_read(graph, depth, add);
    double total = 0;
    for (const auto& [name, layer] : layers) {
        double longest = 0;
        for (const auto& [device, seconds] : layer.beside) longest = std::max(longest, seconds);
        total += layer.alone + longest;
    }
    return total;
}

}  // namespace llm
