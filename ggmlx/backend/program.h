#pragma once
// The inside of a Program: a plan's calls with their pointers, and the flags by which devices wait for each other.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ggmlx/backend/executor.h"

namespace ggmlx {

struct Program::Impl {
    Plan plan;
    std::vector<std::vector<OpCall>> calls;        ///< per segment
    std::vector<std::vector<OpCall*>> call_lists;  ///< the same, as backends take them
    std::unique_ptr<CallStatus[]> statuses;        ///< one per call, in the order of segments
    std::vector<std::vector<int32_t>> device_segments;
    std::unique_ptr<std::atomic<uint32_t>[]> done;  ///< per segment
    std::atomic<bool> abandoned{false};             ///< a device failed: the others stop at their next segment
    std::map<std::string, std::vector<std::byte>, std::less<>> inputs;
    uint64_t bound_to = 0;  ///< the arenas' generation that the calls' pointers belong to
};

}  // namespace ggmlx
