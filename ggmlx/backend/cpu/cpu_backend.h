#pragma once
// The CPU as a device: host memory, read in place, and a team of threads that runs whole steps.

#include <memory>
#include <string>

#include "ggmlx/backend/backend.h"
#include "ggmlx/backend/cpu/numa.h"

namespace ggmlx {

struct CpuOptions {
    int n_threads = 0;  ///< 0: one per physical core, within the affinity mask and the cgroup quota
    std::string
        isa{};  ///< "amx", "avx512", "avx_vnni", "avx2", "scalar"; empty: what GGMLX_ISA names, else the best there is
    int n_reserved = 0;  ///< cores to leave free when n_threads is 0: one for the thread that serves a GPU
    bool pin = true;     ///< hold threads on their cores where that is safe (topology.h), unless OpenMP is told to
    NumaPolicy numa = NumaPolicy::Off;
    /// Products of many columns in bf16 where the processor has instructions for them: faster, but results are no
    /// longer those of the reference and depend on the instruction set and the batch. The description says what came
    /// of it.
    bool fast_bf16 = false;
};

/// Throws invalid_argument for a negative number of threads, unsupported for an ISA this machine lacks (the message
/// lists those it has) or whose kernels fail their check.
std::unique_ptr<Backend> make_cpu_backend(CpuOptions options = {});
/// The same with a plan of its own instead of options.numa: tests deal out experts on machines of one node.
std::unique_ptr<Backend> make_cpu_backend(CpuOptions options, NumaPlan numa);

}  // namespace ggmlx
