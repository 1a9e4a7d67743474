#pragma once
// The inside of a Program: a plan's calls with their pointers, and the flags by which devices wait for each other.

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ggmlx/backend/executor.h"

namespace ggmlx {

/// Lets every device that reaches host memory reach this; adds to `kept` what must live as long as that is so.
void let_reach(std::span<Backend* const> devices, std::span<std::byte> memory,
               std::vector<std::shared_ptr<void>>& kept);

/// Flags and status words of a program, in host memory that all its devices reach.
class StepControl {
  public:
    StepControl(size_t n_segments, size_t n_calls, std::span<Backend* const> devices);
    std::span<std::atomic<uint32_t>> done() { return done_; }
    std::span<CallStatus> statuses() { return statuses_; }
    /// Before a step.
    void clear();

  private:
    std::shared_ptr<std::byte> memory_;
    std::vector<std::shared_ptr<void>> reached_;
    std::span<std::atomic<uint32_t>> done_;  ///< per segment
    std::span<CallStatus> statuses_;         ///< one per call, in the order of segments
};

struct Program::Impl {
    Plan plan;
    std::unique_ptr<StepControl> control;
    std::vector<std::vector<OpCall>> calls;        ///< per segment
    std::vector<std::vector<OpCall*>> call_lists;  ///< the same, as backends take them
    struct DevicePart {
        std::vector<int32_t> segments;
        std::vector<StepView::Part> parts;  ///< the same with their calls
        std::shared_ptr<void> kept;
        StepView view;
    };
    std::vector<DevicePart> devices;
    std::atomic<bool> abandoned{false};  ///< a device failed: the others stop at their next segment
    std::map<std::string, std::vector<std::byte>, std::less<>> inputs;
    uint64_t bound_to = 0;                         ///< the arenas' generation that the calls' pointers belong to
    std::vector<std::shared_ptr<void>> reached{};  ///< host memory that copies of devices read

    std::string describe(int32_t segment) const;
};

}  // namespace ggmlx
