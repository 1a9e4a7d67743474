#pragma once
// Driver: the thread of one device. It sleeps between steps and runs the device's segments of a step.

#include <atomic>
#include <exception>
#include <thread>

#include "ggmlx/backend/program.h"

namespace ggmlx {

class Driver {
  public:
    Driver(Backend& backend, DeviceId device);
    ~Driver();
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

    /// Begins this device's part of a step. The program's flags are cleared before the first driver starts.
    void start(Program::Impl& program);
    /// Waits for the end of this device's part; returns what was thrown, if anything. Whoever throws abandons the step
    /// for all.
    std::exception_ptr finish();

  private:
    static constexpr uint32_t kIdle = 0, kWork = 1;
    Backend& backend_;
    DeviceId device_;
    Program::Impl* program_ = nullptr;
    std::exception_ptr error_;
    std::atomic<uint32_t> state_{kIdle};
    std::jthread thread_;  // last: it uses the others

    void loop();
};

}  // namespace ggmlx
