#include "ggmlx/placement/assign.h"

#include <algorithm>

namespace ggmlx {
namespace {

constexpr DeviceId kUndecided = -1;

class Assignment {
  public:
    Assignment(const LoweredGraph& lowered, const PlanRequest& request, std::vector<std::string>& notes)
        : graph_(*lowered.graph), forced_(lowered.forced), request_(request), notes_(notes) {}

    std::vector<DeviceId> run() {
        const size_t n = graph_.nodes().size();
        devices_.assign(n, kUndecided);
        for (size_t i = 0; i < n; ++i) {
            devices_[i] = forced_[i] != kUndecided ? forced_[i] : wanted(graph_.nodes()[i]);
            if (devices_[i] != kUndecided) devices_[i] = capable(i, devices_[i]);
        }
        follow_readers();
        return std::move(devices_);
    }

  private:
    const Graph& graph_;
    const std::vector<DeviceId>& forced_;
    const PlanRequest& request_;
    std::vector<std::string>& notes_;
    std::vector<DeviceId> devices_;

    DeviceId home(Tensor t) const { return (*request_.placement)[t.storage()].devices[0]; }
    const std::string& device_name(DeviceId d) const { return request_.devices[static_cast<size_t>(d)].name; }

    /// The device of the node that wrote the bytes; undecided for inputs.
    DeviceId device_of_value(Tensor t) const {
        const int32_t producer = t.storage().info().producer;
        return producer < 0 ? kUndecided : devices_[static_cast<size_t>(producer)];
    }

    DeviceId wanted(const Node& node) const {
        for (Tensor t : node.inputs)
            if (t.storage().kind() == TensorKind::State) return home(t);
        if (node.op == Op::ExpertSum || node.op == Op::ExpertSelect) return device_of_value(node.inputs[0]);
        for (Tensor t : node.inputs)
            if (t.storage().kind() == TensorKind::Weight) return home(t);
        DeviceId best = kUndecided;
        int64_t best_size = -1;
        for (Tensor t : node.inputs) {
            const DeviceId d = device_of_value(t);
            if (d != kUndecided && t.shape().n_elements() > best_size) best = d, best_size = t.shape().n_elements();
        }
        return best;
    }

    bool supports(DeviceId d, const Node& node) const {
        return request_.devices[static_cast<size_t>(d)].supports(node);
    }

    /// The device itself, or the fallback device when it lacks the op.
    DeviceId capable(size_t index, DeviceId device) {
        const Node& node = graph_.nodes()[index];
        if (supports(device, node)) return device;
        const bool bound = forced_[index] != kUndecided ||
                           std::any_of(node.inputs.begin(), node.inputs.end(),
                                       [](Tensor t) { return t.storage().kind() == TensorKind::State; });
        require(!bound && supports(request_.fallback_device, node), ErrorKind::Unsupported,
                "{}: {} cannot run on {}, where its weights or its cache live; place them on another device",
                node.scope, name(node.op), device_name(device));
        notes_.push_back(fmt::format("{}: {} runs on {} because {} does not have it for these types", node.scope,
                                     name(node.op), device_name(request_.fallback_device), device_name(device)));
        return request_.fallback_device;
    }

    /// What depends on graph inputs alone goes where its first reader is, from back to front so that chains follow too.
    void follow_readers() {
        for (size_t i = devices_.size(); i-- > 0;) {
            if (devices_[i] != kUndecided) continue;
            DeviceId device = request_.fallback_device;
            for (size_t j = i + 1; j < devices_.size(); ++j)
                if (reads(graph_.nodes()[j], static_cast<int32_t>(i))) {
                    device = devices_[j];
                    break;
                }
            devices_[i] = supports(device, graph_.nodes()[i]) ? device : capable(i, request_.fallback_device);
        }
    }

    static bool reads(const Node& node, int32_t producer) {
        return std::any_of(node.inputs.begin(), node.inputs.end(),
                           [&](Tensor t) { return t.storage().info().producer == producer; });
    }
};

}  // namespace

std::vector<DeviceId> assign_devices(const LoweredGraph& lowered, const PlanRequest& request,
                                     std::vector<std::string>& notes) {
    return Assignment(lowered, request, notes).run();
}

}  // namespace ggmlx
