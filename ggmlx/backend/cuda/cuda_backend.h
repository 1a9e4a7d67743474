#pragma once
// NVIDIA cards as devices. No CUDA header is included here: a build without CUDA has the same functions, which then
// find no card.

#include <chrono>
#include <memory>
#include <string>

#include "ggmlx/backend/backend.h"

namespace ggmlx {

struct CudaOptions {
    /// How cards and processor wait for each other within a step.
    enum class Handover : uint8_t {
        Auto,   ///< flags if they work
        Flags,  ///< stream memory operations: a step is one launch
        Host,   ///< the driving thread starts one segment after the other
    };
    Handover handover = Handover::Auto;
    /// A step in which nothing gets done for so long ends with an error.
    std::chrono::milliseconds stall_timeout{60'000};
};

struct CudaCards {
    int count = 0;
    std::string problem;  ///< why there are none: no CUDA in this build, no driver, a driver too old, no card …
};
/// The cards that this program can use. Never throws.
CudaCards find_cuda_cards();

/// Card `index` as device "cuda<index>". Throws device, unsupported (a card older than sm_80, a build without CUDA).
std::unique_ptr<Backend> make_cuda_backend(int index, const CudaOptions& options = {});

}  // namespace ggmlx
