#include "ggmlx/backend/executor.h"

#include <algorithm>
#include <exception>

#include "ggmlx/backend/driver.h"

namespace ggmlx {

Program::Program(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
const Plan& Program::plan() const { return impl_->plan; }

struct Executor::Impl {
    using DescribeRow = std::function<std::string(int64_t)>;

    DeviceWeights& weights;
    std::vector<std::shared_ptr<std::byte>> arenas;
    std::vector<uint64_t> arena_sizes;
    uint64_t generation = 1;  ///< grows whenever an arena moves
    std::vector<std::unique_ptr<Driver>> drivers;

    explicit Impl(DeviceWeights& w)
        : weights(w), arenas(w.devices().size()), arena_sizes(w.devices().size(), 0), drivers(w.devices().size()) {}

    Backend& backend(DeviceId d) { return *weights.devices()[static_cast<size_t>(d)]; }

    void grow_arenas(const std::vector<uint64_t>& needed) {
        for (size_t d = 0; d < needed.size(); ++d) {
            if (needed[d] <= arena_sizes[d]) continue;
            arenas[d].reset();
            arena_sizes[d] = 0;
            arenas[d] = weights.devices()[d]->alloc(needed[d]);
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
        for (size_t s = 0; s < plan.segments.size(); ++s)
            for (size_t i = 0; i < plan.segments[s].steps.size(); ++i)
                bind_call(plan, plan.segments[s], i, program.calls[s][i]);
        program.bound_to = generation;
    }

    void bind_call(const Plan& plan, const Segment& segment, size_t index, OpCall& call) {
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
    }

    void upload_inputs(Program::Impl& program) {
        for (const PlanValue& value : program.plan.values) {
            if (value.memory != PlanValue::Memory::Input) continue;
            const auto it = program.inputs.find(value.tensor.name());
            require(it != program.inputs.end(), ErrorKind::InvalidArgument, "input {} of a step was not set",
                    value.tensor.name());
            backend(value.device)
                .upload(arenas[static_cast<size_t>(value.device)].get() + value.offset, it->second.data(),
                        it->second.size());
        }
    }

    void fill_slot_tables(Program::Impl& program) {
        for (const auto& table : program.plan.slot_tables) {
            const auto bytes = std::as_bytes(weights.slot_table(table.weight, table.device));
            program.inputs[table.input.name()].assign(bytes.begin(), bytes.end());
        }
    }

    void start_drivers(Program::Impl& program) {
        for (size_t d = 0; d < drivers.size(); ++d) {
            if (program.device_segments[d].empty()) continue;
            if (!drivers[d]) drivers[d] = std::make_unique<Driver>(*weights.devices()[d], static_cast<DeviceId>(d));
            drivers[d]->start(program);
        }
    }

    void finish_drivers(Program::Impl& program) {
        std::exception_ptr first;
        for (size_t d = 0; d < drivers.size(); ++d) {
            if (program.device_segments[d].empty()) continue;
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
                if (!program.statuses[i].ok()) fail_with(program.plan, s, k, program.statuses[i], describe_row);
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

std::vector<PlanDevice> Executor::plan_devices() const {
    std::vector<PlanDevice> list;
    for (Backend* backend : impl_->weights.devices())
        list.push_back({.name = backend->name(),
                        .supports = [backend](const Node& node) { return backend->supports(node); },
                        .scratch_bytes = [backend](const Node& node) { return backend->scratch_bytes(node); }});
    return list;
}

Program Executor::prepare(Plan plan) {
    impl_->grow_arenas(plan.arena_bytes);
    auto program = std::make_unique<Program::Impl>();
    program->plan = std::move(plan);
    const auto& segments = program->plan.segments;
    program->device_segments.resize(impl_->weights.devices().size());
    program->done = std::make_unique<std::atomic<uint32_t>[]>(segments.size());
    size_t n_calls = 0;
    for (size_t s = 0; s < segments.size(); ++s) {
        program->device_segments[static_cast<size_t>(segments[s].device)].push_back(static_cast<int32_t>(s));
        program->calls.emplace_back(segments[s].steps.size());
        n_calls += segments[s].steps.size();
    }
    program->statuses = std::make_unique<CallStatus[]>(n_calls);
    size_t i = 0;
    for (auto& calls : program->calls) {
        auto& list = program->call_lists.emplace_back();
        for (OpCall& call : calls) {
            call.status = &program->statuses[i++];
            list.push_back(&call);
        }
    }
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
    for (size_t s = 0; s < program.plan.segments.size(); ++s) program.done[s].store(0, std::memory_order_relaxed);
    size_t n_calls = 0;
    for (const auto& calls : program.calls) n_calls += calls.size();
    for (size_t i = 0; i < n_calls; ++i) program.statuses[i].clear();
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
