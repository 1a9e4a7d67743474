#pragma once
// Threads for work outside the executor: converting, quantizing, checking, loading. Kernels never use this.

#include <cstdint>
#include <functional>

namespace ggmlx {

/// Processors this process may use: the affinity mask, lowered by a cgroup quota; at least 1.
int usable_cpus();

/// Calls body(i) once for every i in [0, n) from up to n_threads threads (0: usable_cpus()), in no particular order.
/// The first exception is rethrown here after all threads stopped; indices not yet begun are then left out.
void parallel_for(int64_t n, int n_threads, const std::function<void(int64_t)>& body);

}  // namespace ggmlx
