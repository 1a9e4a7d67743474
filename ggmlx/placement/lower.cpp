#include "ggmlx/placement/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "ggmlx/graph/expert_parts.h"

namespace ggmlx {
namespace {

class Lowering {
  public:
    Lowering(const Graph& source, const Placement& placement, const std::vector<PlanDevice>& devices)
        : source_(source), placement_(placement), devices_(devices) {
        result_.graph = std::make_shared<Graph>();
    }

    LoweredGraph run() && {
        for (Tensor input : source_.inputs())
            map_[&input.info()] = graph().input(input.name(), input.dtype(), input.shape());
        for (const Node& node : source_.nodes()) {
            if (node.op == Op::Experts)
                lower(node);
            else
                clone(node);
        }
        for (const auto& output : source_.outputs()) graph().output(mapped(output.tensor), output.name);
        result_.forced.resize(graph().nodes().size(), -1);
        return std::move(result_);
    }

  private:
    const Graph& source_;
    const Placement& placement_;
    const std::vector<PlanDevice>& devices_;
    LoweredGraph result_;
    std::unordered_map<const TensorInfo*, Tensor> map_;  ///< tensors of the source graph -> of the result
    std::map<std::pair<const TensorInfo*, DeviceId>, Tensor> tables_;

    struct PendingSum {
        Tensor weights, ids;
        std::vector<DeviceRows> rows;
        std::string scope;
    };
    std::unordered_map<const TensorInfo*, PendingSum> pending_sums_;  ///< by the experts node's output

    Graph& graph() { return *result_.graph; }

    /// The result's tensor for one of the source. Weights and states are shared; aliases are made when first asked for.
    Tensor mapped(Tensor t) {
        if (t.kind() == TensorKind::Weight || t.kind() == TensorKind::State) return t;
        emit_sum(t);
        if (auto it = map_.find(&t.info()); it != map_.end()) return it->second;
        const Tensor parent(t.info().alias_of);
        Tensor alias = graph().add_alias(mapped(parent), t.shape(), -1);
        keep_own_name(t, alias);
        return map_[&t.info()] = alias;
    }

    void keep_own_name(Tensor from, Tensor to) {
        if (from.name() != to.name()) graph().set_name(to, from.name());
    }

    void clone(const Node& node) {
        std::vector<Tensor> inputs;
        for (Tensor t : node.inputs) inputs.push_back(mapped(t));
        std::vector<OutputSpec> specs;
        for (Tensor t : node.outputs)
            if (!t.info().alias_of) specs.push_back({t.dtype(), t.shape(), t.name()});
        graph().set_scope(node.scope);
        const auto new_index = static_cast<int32_t>(graph().nodes().size());
        const auto outputs = graph().add_node(node.op, node.params, std::move(inputs), std::move(specs));
        size_t next = 0;
        for (Tensor t : node.outputs) {
            Tensor made = t.info().alias_of ? graph().add_alias(mapped(Tensor(t.info().alias_of)), t.shape(), new_index)
                                            : outputs[next++];
            keep_own_name(t, made);
            map_[&t.info()] = made;
        }
    }

    void force(DeviceId device) {
        result_.forced.resize(graph().nodes().size(), -1);
        result_.forced.back() = device;
    }

    /// The input that holds a weight's slot table of a device.
    Tensor slots(Tensor weight, DeviceId device) {
        Tensor& table = tables_[{&weight.info(), device}];
        if (!table) {
            table = graph().input("slots/" + weight.name() + "/" + devices_[static_cast<size_t>(device)].name,
                                  DType::I32, {weight.dim(0)});
            result_.slot_tables.push_back({table, weight, device});
        }
        return table;
    }

    std::set<DeviceId> homes_of(Tensor weight) const {
        const auto& list = placement_[weight].devices;
        return {list.begin(), list.end()};
    }

    void lower(const Node& node) {
        const auto& params = std::get<ExpertsParams>(node.params);
        ExpertWeights w{.gate = node.inputs[3],
                        .up = node.inputs[4],
                        .down = node.inputs[5],
                        .gate_bias = {},
                        .up_bias = {},
                        .down_bias = {}};
        if (node.inputs.size() > 6)
            w.gate_bias = node.inputs[6], w.up_bias = node.inputs[7], w.down_bias = node.inputs[8];
        for (auto [bias, matrix] : {std::pair(w.gate_bias, w.gate), {w.up_bias, w.up}, {w.down_bias, w.down}})
            require(!bias || placement_.same_homes(bias, matrix), ErrorKind::Unsupported,
                    "{} and {} live on different devices; place an expert's bias with its matrix",
                    bias ? bias.name() : "", matrix.name());
        const Tensor x = mapped(node.inputs[0]), ids = mapped(node.inputs[1]), weights = mapped(node.inputs[2]);
        graph().set_scope(node.scope);
        const bool whole = placement_.same_homes(w.gate, w.up) && placement_.same_homes(w.gate, w.down);
        const auto rows =
            whole ? whole_experts(w, x, ids, params.activation) : split_matrices(w, x, ids, params.activation);
        if (rows.size() > 1 || !whole) note(node, w, whole);
        pending_sums_[&node.outputs[0].info()] = {weights, ids, rows, node.scope};
    }

    /// The sum of an experts node is emitted when it is first read: what comes in between (a shared expert) then runs
    /// beside the experts of other devices instead of after them.
    void emit_sum(Tensor old) {
        const auto it = pending_sums_.find(&old.info());
        if (it == pending_sums_.end()) return;
        const PendingSum sum = std::move(it->second);
        pending_sums_.erase(it);
        graph().set_scope(sum.scope);
        const Tensor y = expert_sum(graph(), sum.weights, sum.ids, sum.rows);
        keep_own_name(old, y);
        map_[&old.info()] = y;
    }

    std::vector<DeviceRows> whole_experts(const ExpertWeights& w, Tensor x, Tensor ids, SwiGLUParams activation) {
        std::vector<DeviceRows> parts;
        for (DeviceId device : homes_of(w.gate)) {
            const Tensor table = slots(w.gate, device);
            parts.push_back({table, expert_rows(graph(), w, x, ids, table, activation)});
            force(device);
        }
        return parts;
    }

    std::vector<DeviceRows> split_matrices(const ExpertWeights& w, Tensor x, Tensor ids, SwiGLUParams activation) {
        const Tensor gate = joined(ids, matrix_rows(w.gate, w.gate_bias, x, ids));
        const Tensor up = joined(ids, matrix_rows(w.up, w.up_bias, x, ids));
        return matrix_rows(w.down, w.down_bias, swiglu(graph(), gate, up, activation), ids);
    }

    std::vector<DeviceRows> matrix_rows(Tensor weight, Tensor bias, Tensor x, Tensor ids) {
        std::vector<DeviceRows> parts;
        for (DeviceId device : homes_of(weight)) {
            const Tensor table = slots(weight, device);
            parts.push_back({table, expert_matmul(graph(), weight, bias, x, ids, table)});
            force(device);
        }
        return parts;
    }

    Tensor joined(Tensor ids, const std::vector<DeviceRows>& parts) {
        return parts.size() == 1 ? parts[0].rows : expert_select(graph(), ids, parts);
    }

    void note(const Node& node, const ExpertWeights& w, bool whole) {
        std::map<DeviceId, int64_t> counts;
        for (int64_t e = 0; e < w.gate.dim(0); ++e) ++counts[placement_[w.gate].device_of(e)];
        std::string text = node.scope + ": experts on";
        for (auto [device, count] : counts)
            text += fmt::format(" {} ({})", devices_[static_cast<size_t>(device)].name, count);
        if (!whole)
            text +=
                "; gate, up and down of an expert live on different devices: they run as separate steps with copies "
                "between them";
        result_.notes.push_back(text);
    }
};

}  // namespace

LoweredGraph lower_experts(const Graph& graph, const Placement& placement, const std::vector<PlanDevice>& devices) {
    return Lowering(graph, placement, devices).run();
}

}  // namespace ggmlx
