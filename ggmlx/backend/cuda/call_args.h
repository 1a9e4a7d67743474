#pragma once
// What a launcher gets beside the call: where to launch. Kernels receive raw pointers and sizes.

#include <cuda_runtime.h>

#include <cstdint>

#include "ggmlx/core/math.h"
#include "ggmlx/graph/call.h"

namespace ggmlx::cuda {

/// A CallStatus as kernels see it: its one word.
using StatusWord = unsigned long long;
static_assert(sizeof(CallStatus) == sizeof(StatusWord));
inline StatusWord* status_word(const OpCall& call) { return reinterpret_cast<StatusWord*>(call.status); }

/// Where an op's kernels go.
struct Launch {
    cudaStream_t stream = nullptr;
    int n_sm = 1;  ///< multiprocessors of the device
};

}  // namespace ggmlx::cuda
