#include "ggmlx/backend/driver.h"

#include <chrono>

#include "ggmlx/core/spin.h"

namespace ggmlx {
namespace {

constexpr int kSpins = 4000;  // some tens of microseconds, then the kernel's futex

/// Waits until the flag is no longer `old`: spins for a moment, then sleeps.
void wait_while(const std::atomic<uint32_t>& flag, uint32_t old, int n_spins = kSpins) {
    for (int i = 0; i < n_spins; ++i) {
        if (flag.load(std::memory_order_acquire) != old) return;
        cpu_pause();
    }
    while (flag.load(std::memory_order_acquire) == old) flag.wait(old, std::memory_order_acquire);
}

/// The same for a flag that a device sets, which wakes nobody: spins for as long as a layer may take, then looks now
/// and then.
void poll_while(const std::atomic<uint32_t>& flag, uint32_t old) {
    using Clock = std::chrono::steady_clock;
    constexpr auto kSpinTime = std::chrono::milliseconds(5);
    const auto start = Clock::now();
    while (flag.load(std::memory_order_acquire) == old) {
        for (int i = 0; i < 64 && flag.load(std::memory_order_acquire) == old; ++i) cpu_pause();
        if (Clock::now() - start > kSpinTime) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

void set_and_wake(std::atomic<uint32_t>& flag, uint32_t value) {
    flag.store(value, std::memory_order_release);
    flag.notify_all();
}

/// Hands one device its segments of a step as the segments they wait for get done.
class ProgramSource : public SegmentSource {
  public:
    ProgramSource(Program::Impl& program, DeviceId device)
        : program_(program), part_(program.devices[static_cast<size_t>(device)]), list_(part_.segments) {}

    std::span<OpCall* const> next() noexcept override {
        if (next_ > 0) set_and_wake(flag(list_[next_ - 1]), 1);
        if (next_ == list_.size()) return {};
        const auto segment = static_cast<size_t>(list_[next_++]);
        for (int32_t other : program_.plan.segments[segment].waits) wait_for(other);
        if (program_.abandoned.load(std::memory_order_acquire)) return {};
        return program_.call_lists[segment];
    }

    const StepView* step() noexcept override { return &part_.view; }

  private:
    Program::Impl& program_;
    Program::Impl::DevicePart& part_;
    const std::vector<int32_t>& list_;
    size_t next_ = 0;

    std::atomic<uint32_t>& flag(int32_t segment) { return program_.control->done()[static_cast<size_t>(segment)]; }
    void wait_for(int32_t segment) {
        const DeviceId device = program_.plan.segments[static_cast<size_t>(segment)].device;
        if (program_.plan.devices[static_cast<size_t>(device)].reaches_host)
            poll_while(flag(segment), 0);
        else
            wait_while(flag(segment), 0);
    }
};

void abandon(Program::Impl& program) {
    program.abandoned.store(true, std::memory_order_release);
    for (std::atomic<uint32_t>& flag : program.control->done()) set_and_wake(flag, 1);
}

}  // namespace

Driver::Driver(Backend& backend, DeviceId device) : backend_(backend), device_(device), thread_([this] { loop(); }) {}

Driver::~Driver() {
    program_ = nullptr;
    set_and_wake(state_, kWork);
}

void Driver::start(Program::Impl& program) {
    program_ = &program;
    error_ = nullptr;
    set_and_wake(state_, kWork);
}

std::exception_ptr Driver::finish() {
    wait_while(state_, kWork, 0);  // without spinning: the caller's core belongs to a thread that computes
    return error_;
}

void Driver::loop() {
    while (true) {
        wait_while(state_, kIdle);
        if (!program_) return;
        try {
            ProgramSource source(*program_, device_);
            backend_.run(source);
        } catch (...) {
            error_ = std::current_exception();
            abandon(*program_);
        }
        set_and_wake(state_, kIdle);
    }
}

}  // namespace ggmlx
