#include "ggmlx/backend/program.h"

#include <new>

#include "ggmlx/backend/host_memory.h"

namespace ggmlx {

Program::Program(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
const Plan& Program::plan() const { return impl_->plan; }

void let_reach(std::span<Backend* const> devices, std::span<std::byte> memory,
               std::vector<std::shared_ptr<void>>& kept) {
    for (Backend* device : devices)
        if (device->reaches_host()) kept.push_back(device->reach(memory));
}

StepControl::StepControl(size_t n_segments, size_t n_calls, std::span<Backend* const> devices) {
    const size_t size = n_calls * sizeof(CallStatus) + n_segments * sizeof(std::atomic<uint32_t>);
    memory_ = alloc_host("step", size);
    let_reach(devices, {memory_.get(), size}, reached_);
    statuses_ = {new (memory_.get()) CallStatus[n_calls], n_calls};
    done_ = {new (memory_.get() + n_calls * sizeof(CallStatus)) std::atomic<uint32_t>[n_segments], n_segments};
}

void StepControl::clear() {
    for (CallStatus& status : statuses_) status.clear();
    for (std::atomic<uint32_t>& flag : done_) flag.store(0, std::memory_order_relaxed);
}

std::string Program::Impl::describe(int32_t segment) const {
    const Segment& s = plan.segments[static_cast<size_t>(segment)];
    for (const PlanStep& step : s.steps)
        if (step.node >= 0)
            return fmt::format("{} on {} ({})", plan.graph->nodes()[static_cast<size_t>(step.node)].scope,
                               plan.devices[static_cast<size_t>(s.device)].name, name(step.op));
    return fmt::format("copies on {}", plan.devices[static_cast<size_t>(s.device)].name);
}

}  // namespace ggmlx
