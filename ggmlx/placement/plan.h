#pragma once
// Plan: how one graph runs on given devices. make_plan() assigns devices, splits experts, inserts copies, cuts segments
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
};

/// One tensor on one device. The same tensor on two devices is two values, joined by a copy step.
struct PlanValue {
    enum class Memory : uint8_t {
        Arena,      ///< at `offset` in the device's arena
        Input,      ///< in the arena too; uploaded before each run
        Weight,     ///< in the device's weights (or, for a State, its states)
        SlotTable,  ///< the i32 table slot_of_expert of `tensor` on this device, kept by the weights
        Borrowed,   ///< a weight read on another device than its home: copied into the arena each step
    };
    Tensor tensor;
    DeviceId device = 0;
    Memory memory = Memory::Arena;
    uint64_t offset = 0;
    uint64_t size_bytes = 0;
    DeviceId table_device = -1;  ///< SlotTable: whose table it is (uploaded where needed)
};

/// One op call: indices into Plan::values.
struct PlanStep {
    Op op;
    int32_t node = -1;  ///< node of Plan::graph; -1 for copies
    std::vector<int32_t> inputs, outputs;
    uint64_t scratch_offset = 0;
    uint64_t scratch_bytes = 0;
};

/// Steps that one device runs without waiting. Segments of one device run in order; `waits` names segments of other
/// devices.
struct Segment {
    DeviceId device = 0;
    std::vector<PlanStep> steps;
    std::vector<int32_t> waits;
};

struct Plan {
    /// The graph as planned: experts split into parts; owned, because its nodes are referred to by index.
    std::shared_ptr<const Graph> graph;
    std::vector<PlanValue> values;
    std::vector<Segment> segments;      ///< in an order in which they could run one after the other
    std::vector<uint64_t> arena_bytes;  ///< per device
    std::vector<int32_t> inputs;        ///< values of Memory::Input
    struct Output {
        std::string name;
        int32_t value;
    };
    std::vector<Output> outputs;
    std::vector<std::string>
        notes;  ///< for people: ops moved for lack of support, experts split across devices, weights copied each step
    int32_t n_switches = 0;  ///< how often the work moves to another device in one step

    std::string to_string() const;
};

/// What to plan for.
struct PlanRequest {
    std::shared_ptr<const Graph> graph;
    const TensorSet* tensors = nullptr;  ///< the set whose weights and states the graph reads
    const Placement* placement = nullptr;
    std::vector<PlanDevice> devices;
    DeviceId fallback_device = 0;  ///< runs what a weight's device does not support; the cpu
};

/// A node runs where its state lives, else where its first weight does, else where its largest input is; nodes over
/// graph inputs alone run where their first reader does not matter: on the fallback device. Throws unsupported if no
/// device can run a node.
Plan make_plan(const PlanRequest& request);

}  // namespace ggmlx
