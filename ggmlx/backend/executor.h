#pragma once
// Executor: runs plans on devices. One driving thread per device, kept for the executor's life; arenas are shared by
// all programs and sized for the largest. A step runs all segments; devices work at the same time wherever the plan's
// waits allow it.

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ggmlx/backend/weights.h"
#include "ggmlx/placement/plan.h"

namespace ggmlx {

/// A plan bound to an executor's memory. Made by Executor::prepare; used only with that executor.
class Program {
  public:
    ~Program();
    Program(Program&&) noexcept;
    const Plan& plan() const;

    struct Impl;

  private:
    friend class Executor;
    explicit Program(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// What make_plan needs to know of a device.
PlanDevice plan_device(Backend& backend);

/// Used by one thread at a time.
class Executor {
  public:
    /// Devices and weights must outlive it.
    explicit Executor(DeviceWeights& weights);
    ~Executor();
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;

    /// plan_device of each of this executor's devices.
    std::vector<PlanDevice> plan_devices() const;
    /// Binds a plan; grows the arenas if needed (out_of_memory names the device).
    Program prepare(Plan plan);

    /// Sets an input before run(): the raw bytes in the tensor's dtype and shape. Inputs the plan does not read are
    /// ignored. Throws invalid_argument for an unknown name or a wrong size.
    void set_input(Program& program, std::string_view name, std::span<const std::byte> bytes);
    /// One step. Throws device error naming layer, op and row when a kernel reported a fault. describe_row says what a
    /// row of the batch is ("token 17 at position 3"), for faults inside layers.
    void run(Program& program, const std::function<std::string(int64_t row)>& describe_row = {});
    /// Copies an output of the last run of this program into dst, which has its exact size.
    void read_output(const Program& program, std::string_view name, std::span<std::byte> dst) const;

    uint64_t arena_bytes(DeviceId device) const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ggmlx
