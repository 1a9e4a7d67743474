#include "ggmlx/backend/cuda/step.h"

#include <algorithm>
#include <thread>

#include "ggmlx/backend/cuda/stream.h"
#include "ggmlx/backend/cuda/table.h"
#include "ggmlx/core/spin.h"

namespace ggmlx::cuda {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<uint32_t>& flag_of(const StepView& step, int32_t segment) {
    return step.done[static_cast<size_t>(segment)];
}

int64_t count_done(const StepView& step) {
    return std::count_if(step.done.begin(), step.done.end(),
                         [](const auto& flag) { return flag.load(std::memory_order_acquire) != 0; });
}

}  // namespace

void launch_call(const OpCall& call, const Launch& launch) {
    row(call.op).run(call, launch);
    check(cudaPeekAtLastError(), name(call.op));
}

void StepRunner::run(const StepView& step) {
    if (!*step.kept) record(step);
    static_cast<const Graph*>(step.kept->get())->start(launch_.stream);
    wait(step);
}

void StepRunner::record(const StepView& step) const {
    auto graph = std::make_shared<Graph>();
    graph->record(launch_.stream, [&] {
        for (const StepView::Part& part : step.parts) {
            for (int32_t segment : part.waits) flags_.wait(launch_.stream, flag_of(step, segment));
            for (const OpCall* call : part.calls) launch_call(*call, launch_);
            flags_.set(launch_.stream, flag_of(step, part.segment));
        }
    });
    *step.kept = std::move(graph);
}

/// Spins while a decode step may take, then looks now and then, also for errors: a card that was lost sets no flag.
void StepRunner::wait(const StepView& step) const {
    constexpr auto kSpinTime = std::chrono::milliseconds(20);
    const std::atomic<uint32_t>& last = flag_of(step, step.parts.back().segment);
    const auto start = Clock::now();
    auto progress = start;
    for (int64_t n_done = 0; last.load(std::memory_order_acquire) == 0;) {
        for (int i = 0; i < 64 && last.load(std::memory_order_acquire) == 0; ++i) cpu_pause();
        const auto now = Clock::now();
        if (now - start < kSpinTime) continue;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        if (const cudaError_t status = cudaStreamQuery(launch_.stream); status != cudaErrorNotReady)
            check(status, name_ + ": a step");
        if (const int64_t now_done = count_done(step); now_done != n_done) n_done = now_done, progress = now;
        if (now - progress > stall_timeout_) fail_stalled(step);
    }
    check(cudaStreamSynchronize(launch_.stream), name_ + ": a step");
}

void StepRunner::fail_stalled(const StepView& step) const {
    const double seconds = std::chrono::duration<double>(stall_timeout_).count();
    for (const StepView::Part& part : step.parts) {
        if (flag_of(step, part.segment).load() != 0) continue;
        for (int32_t segment : part.waits)
            if (flag_of(step, segment).load() == 0)
                fail(ErrorKind::Device, "{}: nothing got done for {:.1f} s; it waits for {}", name_, seconds,
                     step.describe(segment));
        fail(ErrorKind::Device, "{}: nothing got done for {:.1f} s within {}", name_, seconds,
             step.describe(part.segment));
    }
    fail(ErrorKind::Device, "{}: a step does not end", name_);
}

}  // namespace ggmlx::cuda
