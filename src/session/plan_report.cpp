#include "src/session/plan_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "ggmlx/backend/executor.h"
#include "src/session/step_bytes.h"

namespace llm {

using ggmlx::DeviceId;
using ggmlx::Home;
using ggmlx::Plan;
using ggmlx::Tensor;
using ggmlx::TensorKind;

namespace {

constexpr uint64_t kSmallBytes = uint64_t{1} << 20;

/// How many experts of a tensor are on each device under each rule; an unsplit tensor counts as one.
std::map<std::pair<DeviceId, int32_t>, int64_t> shares(const Home& home) {
    std::map<std::pair<DeviceId, int32_t>, int64_t> result;
    for (size_t e = 0; e < home.devices.size(); ++e) ++result[{home.devices[e], home.rules[e]}];
    return result;
}

struct Builder {
    const Blueprint& blueprint;
    std::span<const ggmlx::PlacementRule> rules;
    std::span<ggmlx::Backend* const> devices;
    PlanReport report;

    const std::string& name_of(DeviceId d) const { return devices[static_cast<size_t>(d)]->name(); }
    void add_devices_and_rules();
    void add_tensor(Tensor t);
    void add_share(Tensor t, DeviceId device, int32_t rule, int64_t n_experts, uint64_t bytes);
    void add_hints(const Plan& plan);
};

void Builder::add_devices_and_rules() {
    for (const ggmlx::Backend* d : devices) {
        DevicePlan plan;
        plan.name = d->name();
        plan.description = d->description();
        plan.free_bytes = d->free_bytes();
        report.devices.push_back(std::move(plan));
    }
    for (size_t r = 0; r < rules.size(); ++r)
        report.rules.push_back({rules[r].text, rules[r].device, blueprint.placement().rule_matches[r], 0, 0});
}

void Builder::add_share(Tensor t, DeviceId device, int32_t rule, int64_t n_experts, uint64_t bytes) {
    DevicePlan& d = report.devices[static_cast<size_t>(device)];
    const bool expert = t.info().role == ggmlx::Role::Expert;
    (t.kind() == TensorKind::State ? d.cache_bytes : expert ? d.expert_bytes : d.dense_bytes) += bytes;
    const std::string text = rule >= 0 ? rules[static_cast<size_t>(rule)].text : "";
    report.tensors.push_back({t.name(), std::string(ggmlx::name(t.dtype())), name_of(device), text, n_experts, bytes});
    if (rule >= 0) report.rules[static_cast<size_t>(rule)].size_bytes += bytes;
}

void Builder::add_tensor(Tensor t) {
    const Home& home = blueprint.placement()[t];
    std::set<int32_t> deciding;
    for (const auto& [key, n] : shares(home)) {
        const auto parts = static_cast<uint64_t>(home.devices.size());
        const uint64_t bytes = stored_bytes(t) / parts * static_cast<uint64_t>(n);
        add_share(t, key.first, key.second, home.is_split() ? n : 0, bytes);
        deciding.insert(key.second);
    }
    for (int32_t rule : deciding)
        if (rule >= 0) ++report.rules[static_cast<size_t>(rule)].n_decided;
}

/// Device of every node of a plan's graph.
std::vector<DeviceId> node_devices(const Plan& plan) {
    std::vector<DeviceId> result(plan.graph->nodes().size(), -1);
    for (const ggmlx::Segment& segment : plan.segments)
        for (const ggmlx::PlanStep& step : segment.steps)
            if (step.node >= 0) result[static_cast<size_t>(step.node)] = segment.device;
    return result;
}

/// For every node: true if its results are read, and neither its readers nor what it reads are on its own device.
std::vector<bool> isolated_nodes(const Plan& plan, const std::vector<DeviceId>& device) {
    const auto nodes = plan.graph->nodes();
    std::vector<bool> isolated(nodes.size(), false), in_company(nodes.size(), false);
    for (size_t reader = 0; reader < nodes.size(); ++reader)
        for (Tensor t : nodes[reader].inputs) {
            const int32_t producer = t.storage().info().producer;
            if (t.storage().kind() != TensorKind::Value || producer < 0) continue;
            const auto p = static_cast<size_t>(producer);
            isolated[p] = true;
            if (device[p] == device[reader]) in_company[p] = in_company[reader] = true;
        }
    for (size_t n = 0; n < nodes.size(); ++n) isolated[n] = isolated[n] && !in_company[n];
    return isolated;
}

void Builder::add_hints(const Plan& plan) {
    const std::vector<DeviceId> device = node_devices(plan);
    const std::vector<bool> isolated = isolated_nodes(plan, device);
    struct Found {
        std::vector<std::string> names;
        uint64_t bytes = 0;
    };
    std::map<int32_t, Found> by_rule;
    for (size_t n = 0; n < isolated.size(); ++n) {
        if (!isolated[n]) continue;
        for (Tensor t : plan.graph->nodes()[n].inputs) {
            if (t.kind() != TensorKind::Weight || stored_bytes(t) >= kSmallBytes) continue;
            const Home& home = blueprint.placement()[t];
            if (home.is_split() || home.rules[0] < 0 || home.devices[0] != device[n]) continue;
            Found& found = by_rule[home.rules[0]];
            found.names.push_back(t.name());
            found.bytes += stored_bytes(t);
        }
    }
    for (const auto& [rule, found] : by_rule)
        report.hints.push_back(fmt::format(
            "rule {} moves {} small tensors ({} bytes, first {}) to {}, but what they are computed with comes from and "
            "goes to other devices: each costs a hand-over per step and saves next to no memory; a narrower pattern "
            "would leave them "
            "where they are used",
            rules[static_cast<size_t>(rule)].text, found.names.size(), found.bytes, found.names.front(),
            rules[static_cast<size_t>(rule)].device));
}

}  // namespace

PlanReport plan_report(const Blueprint& blueprint, std::span<const ggmlx::PlacementRule> rules,
                       std::span<ggmlx::Backend* const> devices) {
    Builder b{blueprint, rules, devices, {}};
    b.add_devices_and_rules();
    for (int32_t i = 0; i < blueprint.tensors().size(); ++i) b.add_tensor(blueprint.tensors()[i]);

    ggmlx::DeviceWeights weights(blueprint.tensors(), blueprint.placement(), {devices.begin(), devices.end()});
    const ggmlx::Executor executor(weights);
    const Plan one = blueprint.plan(blueprint.padded(1, 1), executor.plan_devices());
    const Plan largest = blueprint.plan(blueprint.largest(), executor.plan_devices());
    for (size_t d = 0; d < devices.size(); ++d) b.report.devices[d].workspace_bytes = largest.arena_bytes[d];
    b.report.n_ctx = blueprint.n_ctx();
    b.report.max_batch = blueprint.largest().n_tokens;
    b.report.switches_per_token = one.n_switches();
    b.report.switches_per_batch = largest.n_switches();
    b.report.notes = one.notes;
    b.add_hints(one);
    return std::move(b.report);
}

}  // namespace llm
