#include "ggmlx/core/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "ggmlx/core/cgroup.h"

namespace ggmlx {

int usable_cpus() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    int allowed = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask)
                                                                : static_cast<int>(std::thread::hardware_concurrency());
    return std::max(1, std::min(allowed, cgroup_cpu_quota().value_or(allowed)));
}

void parallel_for(int64_t n, int n_threads, const std::function<void(int64_t)>& body) {
    const int64_t n_workers = std::min<int64_t>(n, n_threads > 0 ? n_threads : usable_cpus());
    std::atomic<int64_t> next{0};
    std::exception_ptr first_error;
    std::mutex error_mutex;
    auto work = [&] {
        try {
            for (int64_t i; (i = next.fetch_add(1)) < n;) body(i);
        } catch (...) {
            next = n;
            std::lock_guard lock(error_mutex);
            if (!first_error) first_error = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> team;
        for (int64_t t = 1; t < n_workers; ++t) team.emplace_back(work);
        work();
    }
    if (first_error) std::rethrow_exception(first_error);
}

}  // namespace ggmlx
