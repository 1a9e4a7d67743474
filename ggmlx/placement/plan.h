#pragma once
// Plan: how one graph runs on given devices. make_plan() splits experts, assigns devices, inserts copies, cuts segments
// and lays out memory. It is a pure function of shapes and placement (devices come in as data), so it needs no hardware
// and can be printed and compared.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ggmlx/graph/graph.h"
#include "ggmlx/placement/rules.h"

namespace ggmlx {

/// What a plan needs to know of a device.
struct PlanDevice {
    std::string name;
    std::function<bool(const Node&)> supports;
    std::function<size_t(const Node&)> scratch_bytes;
    /// Its memory is its own, and copies between it and devices without this are steps of this device.
    bool reaches_host = false;
};

/// One tensor's bytes on one device. The same tensor on two devices is two values, joined by a copy step: of the
/// reader's device, or of the source's where only that one reaches both memories.
struct PlanValue {
    enum class Memory : uint8_t {
        Arena,  ///< at `offset` in the device's arena
        Input,  ///< in the arena too; set before each run
        Home,   ///< a weight or state, where the device's weights keep it
    };
    Tensor tensor;  ///< the owner of the bytes, never an alias
    DeviceId device = 0;
    Memory memory = Memory::Arena;
    uint64_t offset = 0;
    uint64_t size_bytes = 0;  ///< 0 for Home
};

/// One op call.
struct PlanStep {
    Op op;
    int32_t node = -1;                     ///< node of Plan::graph; -1 for a copy
    std::vector<int32_t> inputs, outputs;  ///< indices into Plan::values, parallel to the node's tensors
    uint64_t scratch_offset = 0;           ///< in the device's arena
    uint64_t scratch_bytes = 0;
    /// Consecutive steps of one round do not need each other and may run at the same time. Counted over the steps of
    /// the device; the memory of a round's steps does not overlap.
    int32_t round = 0;
};

/// Steps that one device runs without waiting. Segments of one device run in order; `waits` names segments of other
/// devices that must be done before this one starts, so segments form a DAG.
struct Segment {
    DeviceId device = 0;
    std::vector<PlanStep> steps;
    std::vector<int32_t> waits;
};

struct Plan {
    /// The graph as planned: experts split into parts; nodes are referred to by index.
    std::shared_ptr<const Graph> graph;
    std::vector<PlanDevice> devices;
    std::vector<PlanValue> values;
    std::vector<Segment> segments;      ///< in an order in which they could run one after the other
    std::vector<uint64_t> arena_bytes;  ///< per device
    /// Inputs that hold slot_of_expert of a stacked weight on a device; the executor fills them from the weights.
    struct SlotTable {
        Tensor input;
        Tensor weight;
        DeviceId device;
    };
    std::vector<SlotTable> slot_tables;
    struct Output {
        std::string name;
        int32_t value;
    };
    std::vector<Output> outputs;
    /// For people: ops moved for lack of support, experts split across devices, weights copied each step.
    std::vector<std::string> notes;
    /// How often work is handed from one device to another in one step.
    int32_t n_switches() const;
    /// One line per segment and step.
    std::string to_string() const;
};

/// What to plan for.
struct PlanRequest {
    std::shared_ptr<const Graph> graph;
    const Placement* placement = nullptr;  ///< homes of the weights and states the graph reads
    std::vector<PlanDevice> devices;
    DeviceId fallback_device = 0;  ///< runs what a weight's device does not support: the cpu, whose table is complete
};

/// A node runs where its state lives, else where its first weight does, else where its largest input is (the sum of
/// expert rows: where their routing weights are); nodes over graph inputs alone run where their first reader does. A
/// weight that is read on another device than its home is copied there each step, with a note. Throws unsupported if no
/// device can run a node.
Plan make_plan(const PlanRequest& request);

}  // namespace ggmlx
