#include "ggmlx/backend/executor.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "ggmlx/backend/driver.h"
#include "ggmlx/backend/host_memory.h"

namespace ggmlx {

struct Executor::Impl {
    using DescribeRow = std::function<std::string(int64_t)>;

    DeviceWeights& weights;
    std::vector<std::shared_ptr<std::byte>> arenas;
    std::vector<std::vector<std::shared_ptr<void>>> arenas_reached;  ///< per device, released before the arena
    std::vector<uint64_t> arena_sizes;
    uint64_t generation = 1;  ///< grows whenever an arena moves
    std::vector<std::unique_ptr<Driver>> drivers;

    explicit Impl(DeviceWeights& w)
        : weights(w),
          arenas(w.devices().size()),
          arenas_reached(w.devices().size()),
          arena_sizes(w.devices().size(), 0),
          drivers(w.devices().size()) {}

    Backend& backend(DeviceId d) { return *weights.devices()[static_cast<size_t>(d)]; }

    void grow_arenas(const std::vector<uint64_t>& needed) {
        for (size_t d = 0; d < needed.size(); ++d) {
            if (needed[d] <= arena_sizes[d]) continue;
            arenas_reached[d].clear();
            arenas[d].reset();
            arena_sizes[d] = 0;
            arenas[d] = weights.devices()[d]->alloc(needed[d]);
            if (!weights.devices()[d]->reaches_host())
                let_reach(weights.devices(), {arenas[d].get(), needed[d]}, arenas_reached[d]);
            arena_sizes[d] = needed[d];
            ++generation;
        }
    }

    TensorView view(const Plan& plan, int32_t v, const TensorInfo& as) {
        const PlanValue& value = plan.values[static_cast<size_t>(v)];
        if (value.memory == PlanValue::Memory::Home) {
            TensorView home = weights.view(value.tensor, value.device);
            if (home.slot_stride == 0) home.shape = as.shape;
            return home;
        }
        return {.data = arenas[static_cast<size_t>(value.device)].get() + value.offset,
                .dtype = as.dtype,
                .shape = as.shape,
                .slot_stride = 0};
    }

    void bind(Program::Impl& program) {
        const Plan& plan = program.plan;
        for (auto& part : program.devices) part.kept.reset();
        program.reached.clear();
        for (size_t s = 0; s < plan.segments.size(); ++s)
            for (size_t i = 0; i < plan.segments[s].steps.size(); ++i)
                bind_call(program, plan.segments[s], i, program.calls[s][i]);
        program.bound_to = generation;
    }

    /// A weight or state at home in host memory as a device reaches it: a state itself, a weight, which may lie in a
    /// mapped file, as a copy.
    void reach_home(Program::Impl& program, TensorView& view, TensorKind kind) {
        const auto size = static_cast<size_t>(storage_bytes(view.dtype, view.shape));
        if (kind == TensorKind::Weight) {
            const auto copy = alloc_host("copy", size);
            std::memcpy(copy.get(), view.data, size);
            view.data = copy.get();
            let_reach(weights.devices(), {view.data, size}, program.reached);
            program.reached.push_back(copy);
        } else {
            let_reach(weights.devices(), {view.data, size}, program.reached);
        }
    }

    void bind_copy(Program::Impl& program, const PlanStep& step, OpCall& call) {
        const PlanValue &from = program.plan.values[static_cast<size_t>(step.inputs[0])],
                        &to = program.plan.values[static_cast<size_t>(step.outputs[0])];
        if (from.memory == PlanValue::Memory::Home && !backend(from.device).reaches_host() &&
            backend(to.device).reaches_host())
            reach_home(program, call.in[0], from.tensor.kind());
    }

    void bind_call(Program::Impl& program, const Segment& segment, size_t index, OpCall& call) {
        const Plan& plan = program.plan;
        const PlanStep& step = segment.steps[index];
        const Node* node = step.node >= 0 ? &plan.graph->nodes()[static_cast<size_t>(step.node)] : nullptr;
        auto views = [&](const std::vector<int32_t>& values, const std::vector<Tensor>* tensors) {
            std::vector<TensorView> list;
            for (size_t k = 0; k < values.size(); ++k)
                list.push_back(
                    view(plan, values[k],
                         tensors ? (*tensors)[k].info() : plan.values[static_cast<size_t>(values[k])].tensor.info()));
            return list;
        };
        static const OpParams kNoParams;
        call.op = step.op;
        call.params = node ? &node->params : &kNoParams;
        call.in = views(step.inputs, node ? &node->inputs : nullptr);
        call.out = views(step.outputs, node ? &node->outputs : nullptr);
        call.round = step.round;
        call.scratch =
            step.scratch_bytes ? arenas[static_cast<size_t>(segment.device)].get() + step.scratch_offset : nullptr;
        if (step.op == Op::Copy && !node) bind_copy(program, step, call);
    }

    void upload_inputs(Program::Impl& program) {
        std::vector<std::vector<Backend::Upload>> uploads(arenas.size());
        for (const PlanValue& value : program.plan.values) {
            if (value.memory != PlanValue::Memory::Input) continue;
            const auto it = program.inputs.find(value.tensor.name());
            require(it != program.inputs.end(), ErrorKind::InvalidArgument, "input {} of a step was not set",
                    value.tensor.name());
            const auto d = static_cast<size_t>(value.device);
            uploads[d].push_back({arenas[d].get() + value.offset, it->second});
        }
        for (size_t d = 0; d < uploads.size(); ++d)
            if (!uploads[d].empty()) backend(static_cast<DeviceId>(d)).upload_all(uploads[d]);
    }

    void fill_slot_tables(Program::Impl& program) {
        for (const auto& table : program.plan.slot_tables) {
            const auto bytes = std::as_bytes(weights.slot_table(table.weight, table.device));
            program.inputs[table.input.name()].assign(bytes.begin(), bytes.end());
        }
    }

    void start_drivers(Program::Impl& program) {
        for (size_t d = 0; d < drivers.size(); ++d) {
            if (program.devices[d].segments.empty()) continue;
            if (!drivers[d]) drivers[d] = std::make_unique<Driver>(*weights.devices()[d], static_cast<DeviceId>(d));
            drivers[d]->start(program);
        }
    }

    void finish_drivers(Program::Impl& program) {
        std::exception_ptr first;
        for (size_t d = 0; d < drivers.size(); ++d) {
            if (program.devices[d].segments.empty()) continue;
            auto error = drivers[d]->finish();
            if (!first) first = error;
        }
        if (first) std::rethrow_exception(first);
    }

    /// Turns the first fault that a kernel reported into an error.
    void check_faults(Program::Impl& program, const DescribeRow& describe_row) {
        size_t i = 0;
        for (size_t s = 0; s < program.calls.size(); ++s)
            for (size_t k = 0; k < program.calls[s].size(); ++k, ++i)
                if (const CallStatus& status = program.control->statuses()[i]; !status.ok())
                    fail_with(program.plan, s, k, status, describe_row);
    }

    [[noreturn]] void fail_with(const Plan& plan, size_t segment, size_t index, const CallStatus& status,
                                const DescribeRow& describe_row) {
        const PlanStep& step = plan.segments[segment].steps[index];
        const std::string scope = step.node >= 0 ? plan.graph->nodes()[static_cast<size_t>(step.node)].scope : "";
        // Outside of layers rows may be those that want logits.
        const std::string row = describe_row && !scope.empty() ? describe_row(status.row()) : "";
        fail(ErrorKind::Device, "{}{}{} on {}: {} in row {}{}{}", scope, scope.empty() ? "" : ": ", name(step.op),
             backend(plan.segments[segment].device).name(), describe(status.fault()), status.row(),
             row.empty() ? "" : ", ", row);
    }
};

Executor::Executor(DeviceWeights& weights) : impl_(std::make_unique<Impl>(weights)) {}
Executor::~Executor() = default;

PlanDevice plan_device(Backend& backend) {
    return {.name = backend.name(),
            .supports = [&backend](const Node& node) { return backend.supports(node); },
            .scratch_bytes = [&backend](const Node& node) { return backend.scratch_bytes(node); },
            .reaches_host = backend.reaches_host()};
}

std::vector<PlanDevice> Executor::plan_devices() const {
    std::vector<PlanDevice> list;
    for (Backend* backend : impl_->weights.devices()) list.push_back(plan_device(*backend));
    return list;
}

Program Executor::prepare(Plan plan) {
    impl_->grow_arenas(plan.arena_bytes);
    auto program = std::make_unique<Program::Impl>();
    program->plan = std::move(plan);
    const auto& segments = program->plan.segments;
    size_t n_calls = 0;
    for (const Segment& segment : segments) n_calls += segment.steps.size();
    program->control = std::make_unique<StepControl>(segments.size(), n_calls, impl_->weights.devices());
    size_t i = 0;
    for (const Segment& segment : segments) {
        auto& list = program->call_lists.emplace_back();
        for (OpCall& call : program->calls.emplace_back(segment.steps.size())) {
            call.status = &program->control->statuses()[i++];
            list.push_back(&call);
        }
    }
    program->devices = std::vector<Program::Impl::DevicePart>(impl_->weights.devices().size());
    for (size_t s = 0; s < segments.size(); ++s) {
        auto& part = program->devices[static_cast<size_t>(segments[s].device)];
        part.segments.push_back(static_cast<int32_t>(s));
        part.parts.push_back({program->call_lists[s], segments[s].waits, static_cast<int32_t>(s)});
    }
    for (auto& part : program->devices)
        part.view = {.parts = part.parts,
                     .done = program->control->done(),
                     .kept = &part.kept,
                     .describe = [inside = program.get()](int32_t segment) { return inside->describe(segment); }};
    return Program(std::move(program));
}

void Executor::set_input(Program& program, std::string_view name, std::span<const std::byte> bytes) {
    for (Tensor input : program.impl_->plan.graph->inputs()) {
        if (input.name() != name) continue;
        const auto expected = static_cast<size_t>(storage_bytes(input.dtype(), input.shape()));
        require(bytes.size() == expected, ErrorKind::InvalidArgument, "input {} has {} bytes, {} given", name, expected,
                bytes.size());
        program.impl_->inputs[input.name()].assign(bytes.begin(), bytes.end());
        return;
    }
    fail(ErrorKind::InvalidArgument, "the graph has no input {}", name);
}

void Executor::run(Program& handle, const std::function<std::string(int64_t)>& describe_row) {
    Program::Impl& program = *handle.impl_;
    if (program.bound_to != impl_->generation) impl_->bind(program);
    impl_->fill_slot_tables(program);
    impl_->upload_inputs(program);
    program.abandoned = false;
    program.control->clear();
    impl_->start_drivers(program);
    impl_->finish_drivers(program);
    impl_->check_faults(program, describe_row);
}

void Executor::read_output(const Program& program, std::string_view name, std::span<std::byte> dst) const {
    const Plan& plan = program.impl_->plan;
    for (const auto& output : plan.outputs) {
        if (output.name != name) continue;
        const PlanValue& value = plan.values[static_cast<size_t>(output.value)];
        require(dst.size() == value.size_bytes, ErrorKind::InvalidArgument, "output {} has {} bytes, {} asked for",
                name, value.size_bytes, dst.size());
        impl_->backend(value.device)
            .download(dst.data(), impl_->arenas[static_cast<size_t>(value.device)].get() + value.offset, dst.size());
        return;
    }
    fail(ErrorKind::InvalidArgument, "the graph has no output {}", name);
}

uint64_t Executor::arena_bytes(DeviceId device) const { return impl_->arena_sizes[static_cast<size_t>(device)]; }

}  // namespace ggmlx
