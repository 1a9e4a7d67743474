#include "ggmlx/placement/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "ggmlx/placement/arena.h"
#include "ggmlx/placement/assign.h"
#include "ggmlx/placement/lower.h"
#include "ggmlx/placement/rounds.h"

namespace ggmlx {
namespace {

constexpr int32_t kToTheEnd = std::numeric_limits<int32_t>::max();

/// Builds values and segments from nodes with devices, in order.
class Scheduler {
  public:
    Scheduler(Plan& plan, const Placement& placement, std::vector<DeviceId> node_devices)
        : plan_(plan), placement_(placement), node_devices_(std::move(node_devices)), open_(plan.devices.size(), -1) {}

    void run() {
        for (size_t i = 0; i < plan_.graph->nodes().size(); ++i) schedule(static_cast<int32_t>(i));
        for (const auto& output : plan_.graph->outputs())
            plan_.outputs.push_back({output.name, value_of_output(output.tensor)});
    }

    /// done_before()[s]: segments that are surely done when segment s starts.
    const std::vector<std::set<int32_t>>& done_before() const { return done_before_; }

  private:
    Plan& plan_;
    const Placement& placement_;
    std::vector<DeviceId> node_devices_;
    std::vector<int32_t> open_;  ///< per device: the segment that still takes steps, or -1
    std::vector<std::set<int32_t>> done_before_;
    std::vector<int32_t> last_segment_ = std::vector<int32_t>(open_.size(), -1);
    std::map<std::pair<const TensorInfo*, DeviceId>, int32_t> value_ids_;
    std::map<int32_t, int32_t> segment_of_value_;  ///< the segment that computes a value

    struct Source {
        int32_t value;
        bool needs_copy;
    };

    int32_t new_value(Tensor root, DeviceId device, PlanValue::Memory memory) {
        const bool at_home = memory == PlanValue::Memory::Home;
        const auto bytes = at_home ? 0 : static_cast<uint64_t>(storage_bytes(root.dtype(), root.shape()));
        plan_.values.push_back({.tensor = root, .device = device, .memory = memory, .offset = 0, .size_bytes = bytes});
        return value_ids_[{&root.info(), device}] = static_cast<int32_t>(plan_.values.size()) - 1;
    }

    int32_t find_value(Tensor root, DeviceId device) const {
        const auto it = value_ids_.find({&root.info(), device});
        return it == value_ids_.end() ? -1 : it->second;
    }

    /// The value of a tensor for a reader on `device`: there already, or elsewhere and to be copied.
    Source source(Tensor tensor, DeviceId device) {
        const Tensor root = tensor.storage();
        if (const int32_t here = find_value(root, device); here >= 0) return {here, false};
        switch (root.kind()) {
            case TensorKind::Input:
                return {new_value(root, device, PlanValue::Memory::Input), false};
            case TensorKind::Weight:
            case TensorKind::State:
                return source_at_home(root, device);
            case TensorKind::Value:
                break;
        }
        const DeviceId producer = node_devices_[static_cast<size_t>(root.info().producer)];
        return {find_value(root, producer), true};
    }

    Source source_at_home(Tensor root, DeviceId device) {
        const Home& home = placement_[root];
        if (std::find(home.devices.begin(), home.devices.end(), device) != home.devices.end())
            return {new_value(root, device, PlanValue::Memory::Home), false};
        plan_.notes.push_back(fmt::format("{} lives on {} but is read on {}: {} bytes are copied in every step",
                                          root.name(), plan_.devices[static_cast<size_t>(home.devices[0])].name,
                                          plan_.devices[static_cast<size_t>(device)].name,
                                          storage_bytes(root.dtype(), root.shape())));
        const int32_t there = find_value(root, home.devices[0]);
        return {there >= 0 ? there : new_value(root, home.devices[0], PlanValue::Memory::Home), true};
    }

    void schedule(int32_t index) {
        const Node& node = plan_.graph->nodes()[static_cast<size_t>(index)];
        const DeviceId device = node_devices_[static_cast<size_t>(index)];
        std::vector<Source> sources;
        std::set<int32_t> needed;  // segments of other devices that must be done first
        for (Tensor t : node.inputs) {
            sources.push_back(source(t, device));
            Source& source = sources.back();
            if (source.needs_copy && is_out_of_reach(source.value, device)) {
                needed.insert(pushed(t.storage(), source, device));
                continue;
            }
            const auto it = segment_of_value_.find(source.value);
            if (source.needs_copy && it != segment_of_value_.end()) needed.insert(it->second);
        }
        const int32_t segment = segment_for(device, needed);
        PlanStep step{.op = node.op, .node = index, .inputs = {}, .outputs = {}};
        for (size_t i = 0; i < sources.size(); ++i)
            step.inputs.push_back(sources[i].needs_copy
                                      ? copied(node.inputs[i].storage(), sources[i].value, device, segment)
                                      : sources[i].value);
        for (Tensor t : node.outputs) step.outputs.push_back(output_value(t, device, segment));
        step.scratch_bytes = plan_.devices[static_cast<size_t>(device)].scratch_bytes(node);
        steps(segment).push_back(std::move(step));
    }

    std::vector<PlanStep>& steps(int32_t segment) { return plan_.segments[static_cast<size_t>(segment)].steps; }

    int32_t output_value(Tensor t, DeviceId device, int32_t segment) {
        if (t.info().alias_of) return written_in_place(t.storage(), device, segment);
        const int32_t value = new_value(t, device, PlanValue::Memory::Arena);
        segment_of_value_[value] = segment;
        return value;
    }

    /// A state after an append: readers elsewhere wait for this segment, and copies made before are out of date.
    int32_t written_in_place(Tensor root, DeviceId device, int32_t segment) {
        const int32_t value = find_value(root, device);
        segment_of_value_[value] = segment;
        for (DeviceId other = 0; other < static_cast<DeviceId>(plan_.devices.size()); ++other)
            if (other != device) value_ids_.erase({&root.info(), other});
        return value;
    }

    int32_t copied(Tensor root, int32_t from, DeviceId device, int32_t segment) {
        if (const int32_t here = find_value(root, device); here >= 0) return here;  // two inputs of a node share it
        const int32_t to = new_value(root, device, PlanValue::Memory::Arena);
        segment_of_value_[to] = segment;
        steps(segment).push_back({.op = Op::Copy, .node = -1, .inputs = {from}, .outputs = {to}});
        return to;
    }

    /// Whether the reader's device cannot copy the value to itself.
    bool is_out_of_reach(int32_t value, DeviceId reader) const {
        const auto& source = plan_.devices[static_cast<size_t>(plan_.values[static_cast<size_t>(value)].device)];
        return source.reaches_host && !plan_.devices[static_cast<size_t>(reader)].reaches_host;
    }

    /// Copies a value to the reader's device as a step of the value's own; `source` becomes the copy. Returns the
    /// segment of that step.
    int32_t pushed(Tensor root, Source& source, DeviceId reader) {
        const DeviceId owner = plan_.values[static_cast<size_t>(source.value)].device;
        const int32_t segment = segment_for(owner, {});
        const int32_t to = new_value(root, reader, PlanValue::Memory::Arena);
        segment_of_value_[to] = segment;
        steps(segment).push_back({.op = Op::Copy, .node = -1, .inputs = {source.value}, .outputs = {to}});
        source = {to, false};
        return segment;
    }

    /// The device's open segment if all that is needed is done before it starts, else a new one. Segments that others
    /// wait for are closed: what they made is handed over as soon as possible.
    int32_t segment_for(DeviceId device, const std::set<int32_t>& needed) {
        for (int32_t s : needed) {
            int32_t& open = open_[static_cast<size_t>(plan_.segments[static_cast<size_t>(s)].device)];
            if (open == s) open = -1;
        }
        int32_t& open = open_[static_cast<size_t>(device)];
        if (open >= 0) {
            const auto& done = done_before_[static_cast<size_t>(open)];
            if (std::includes(done.begin(), done.end(), needed.begin(), needed.end())) return open;
        }
        return open = new_segment(device, needed);
    }

    int32_t new_segment(DeviceId device, const std::set<int32_t>& needed) {
        const auto id = static_cast<int32_t>(plan_.segments.size());
        int32_t& last = last_segment_[static_cast<size_t>(device)];
        std::set<int32_t> done;
        if (last >= 0) {
            done = done_before_[static_cast<size_t>(last)];
            done.insert(last);
        }
        Segment segment{.device = device, .steps = {}, .waits = {}};
        for (int32_t s : needed) {
            if (done.count(s)) continue;
            segment.waits.push_back(s);
            const auto& before = done_before_[static_cast<size_t>(s)];
            done.insert(before.begin(), before.end());
            done.insert(s);
        }
        last = id;
        done_before_.push_back(std::move(done));
        plan_.segments.push_back(std::move(segment));
        return id;
    }

    int32_t value_of_output(Tensor t) {
        const Tensor root = t.storage();
        require(root.kind() == TensorKind::Value, ErrorKind::InvalidArgument,
                "{} is no computed value and cannot be an output", t.name());
        return find_value(root, node_devices_[static_cast<size_t>(root.info().producer)]);
    }
};

/// Lays out each device's arena: values by their lives, scratch for one round each. Time is counted in rounds.
class MemoryLayout {
  public:
    MemoryLayout(Plan& plan, const std::vector<std::set<int32_t>>& done_before)
        : plan_(plan), done_before_(done_before) {}

    void run() {
        plan_.arena_bytes.assign(plan_.devices.size(), 0);
        find_lives();
        for (size_t d = 0; d < plan_.devices.size(); ++d) lay_out_device(static_cast<DeviceId>(d));
    }

  private:
    Plan& plan_;
    const std::vector<std::set<int32_t>>& done_before_;
    struct Life {
        int32_t first = 0, last = 0;
    };
    std::vector<Life> lives_;  ///< per value, in rounds of its device

    /// A value lives from the round that makes it (an input: from the start) to its last reader. A reader on another
    /// device may be late: then until the first segment of the value's own device that starts after that reader is
    /// done.
    void find_lives() {
        lives_.assign(plan_.values.size(), Life{});
        for (size_t s = 0; s < plan_.segments.size(); ++s) {
            for (const PlanStep& step : plan_.segments[s].steps) {
                for (int32_t v : step.outputs) begin(v, static_cast<int32_t>(s), step.round);
                for (int32_t v : step.inputs) extend(v, static_cast<int32_t>(s), step.round);
            }
        }
        for (size_t v = 0; v < plan_.values.size(); ++v)
            if (plan_.values[v].memory == PlanValue::Memory::Input) lives_[v].first = 0;
        for (const auto& output : plan_.outputs) lives_[static_cast<size_t>(output.value)].last = kToTheEnd;
    }

    /// What another device writes begins with the first segment here that may still run when that device does.
    void begin(int32_t value, int32_t writer_segment, int32_t writer_round) {
        const DeviceId device = plan_.values[static_cast<size_t>(value)].device;
        const bool local = plan_.segments[static_cast<size_t>(writer_segment)].device == device;
        Life& life = lives_[static_cast<size_t>(value)];
        life.first = life.last = local ? writer_round : first_round_beside(device, writer_segment);
    }

    int32_t first_round_beside(DeviceId device, int32_t writer_segment) const {
        const auto& done = done_before_[static_cast<size_t>(writer_segment)];
        for (size_t s = 0; s < plan_.segments.size(); ++s)
            if (plan_.segments[s].device == device && !done.count(static_cast<int32_t>(s)))
                return plan_.segments[s].steps[0].round;
        return 0;
    }

    void extend(int32_t value, int32_t reader_segment, int32_t reader_round) {
        Life& life = lives_[static_cast<size_t>(value)];
        const DeviceId device = plan_.values[static_cast<size_t>(value)].device;
        const bool local = plan_.segments[static_cast<size_t>(reader_segment)].device == device;
        life.last = std::max(life.last, local ? reader_round : last_round_beside(device, reader_segment));
    }

    int32_t last_round_beside(DeviceId device, int32_t reader_segment) const {
        for (size_t s = static_cast<size_t>(reader_segment) + 1; s < plan_.segments.size(); ++s)
            if (plan_.segments[s].device == device && done_before_[s].count(reader_segment))
                return plan_.segments[s].steps[0].round - 1;
        return kToTheEnd;
    }

    void lay_out_device(DeviceId device) {
        std::vector<ArenaBlock> blocks;
        std::vector<uint64_t*> targets;
        for (size_t v = 0; v < plan_.values.size(); ++v) {
            PlanValue& value = plan_.values[v];
            if (value.device != device || value.memory == PlanValue::Memory::Home) continue;
            blocks.push_back({value.size_bytes, lives_[v].first, lives_[v].last});
            targets.push_back(&value.offset);
        }
        for (Segment& segment : plan_.segments) {
            if (segment.device != device) continue;
            for (PlanStep& step : segment.steps) {
                if (step.scratch_bytes == 0) continue;
                blocks.push_back({step.scratch_bytes, step.round, step.round});
                targets.push_back(&step.scratch_offset);
            }
        }
        plan_.arena_bytes[static_cast<size_t>(device)] = lay_out(blocks);
        for (size_t i = 0; i < blocks.size(); ++i) *targets[i] = blocks[i].offset;
    }
};

std::string describe_value(const Plan& plan, int32_t v) {
    const PlanValue& value = plan.values[static_cast<size_t>(v)];
    const auto& device = plan.devices[static_cast<size_t>(value.device)].name;
    return value.memory == PlanValue::Memory::Home ? value.tensor.name()
                                                   : fmt::format("{}@{}+{}", value.tensor.name(), device, value.offset);
}

}  // namespace

int32_t Plan::n_switches() const {
    size_t n = 0;
    for (const Segment& segment : segments) n += segment.waits.size();
    return static_cast<int32_t>(n);
}

std::string Plan::to_string() const {
    std::string text;
    for (size_t s = 0; s < segments.size(); ++s) {
        text += fmt::format("segment {} on {}", s, devices[static_cast<size_t>(segments[s].device)].name);
        for (size_t i = 0; i < segments[s].waits.size(); ++i)
            text += fmt::format("{} {}", i ? "," : " after", segments[s].waits[i]);
        text += "\n";
        for (const PlanStep& step : segments[s].steps) {
            text += fmt::format("  {}(", name(step.op));
            for (size_t i = 0; i < step.inputs.size(); ++i)
                text += (i ? ", " : "") + describe_value(*this, step.inputs[i]);
            text += ") ->";
            for (int32_t v : step.outputs) text += " " + describe_value(*this, v);
            text += "\n";
        }
    }
    for (const auto& note : notes) text += "note: " + note + "\n";
    return text;
}

Plan make_plan(const PlanRequest& request) {
    Plan plan;
    plan.devices = request.devices;
    LoweredGraph lowered = lower_experts(*request.graph, *request.placement, request.devices);
    plan.graph = lowered.graph;
    plan.slot_tables = std::move(lowered.slot_tables);
    plan.notes = std::move(lowered.notes);
    auto node_devices = assign_devices(lowered, request, plan.notes);
    Scheduler scheduler(plan, *request.placement, std::move(node_devices));
    scheduler.run();
    number_rounds(plan);
    MemoryLayout(plan, scheduler.done_before()).run();
    return plan;
}

}  // namespace ggmlx
