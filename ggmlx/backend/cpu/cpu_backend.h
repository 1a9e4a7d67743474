#pragma once
// The CPU as a device: host memory, read in place, and a team of threads that runs whole steps.

#include <memory>
#include <string>

#include "ggmlx/backend/backend.h"

namespace ggmlx {

struct CpuOptions {
    int n_threads = 0;  ///< 0: one per physical core, within the affinity mask and the cgroup quota
    std::string isa;    ///< "avx512", "avx2", "scalar"; empty: what GGMLX_ISA names, else the best there is
};

/// Throws invalid_argument for a negative number of threads, unsupported for an ISA this machine lacks (the message
/// lists those it has) or whose kernels fail their check.
std::unique_ptr<Backend> make_cpu_backend(CpuOptions options = {});

}  // namespace ggmlx
