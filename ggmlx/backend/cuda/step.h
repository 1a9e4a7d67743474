#pragma once
// Runs a device's part of a step: recorded once as one CUDA graph with its waits, then started by a single launch.

#include <chrono>
#include <string>

#include "ggmlx/backend/backend.h"
#include "ggmlx/backend/cuda/handover.h"
#include "ggmlx/backend/cuda/ops.h"

namespace ggmlx::cuda {

/// Launches the kernels of a call. Throws a device error that names the op.
void launch_call(const OpCall& call, const Launch& launch);

class StepRunner {
  public:
    /// name: of the device, for messages.
    StepRunner(std::string name, const Launch& launch, const FlagOperations& flags,
               std::chrono::milliseconds stall_timeout)
        : name_(std::move(name)), launch_(launch), flags_(flags), stall_timeout_(stall_timeout) {}

    /// Returns when the device has done its last segment, or when the step was abandoned. Throws device errors: what a
    /// kernel died of, and a step in which nothing got done for the stall timeout, naming what was waited for.
    void run(const StepView& step);

  private:
    std::string name_;
    const Launch& launch_;
    const FlagOperations& flags_;
    std::chrono::milliseconds stall_timeout_;

    void record(const StepView& step) const;
    void wait(const StepView& step) const;
    [[noreturn]] void fail_stalled(const StepView& step) const;
};

}  // namespace ggmlx::cuda
