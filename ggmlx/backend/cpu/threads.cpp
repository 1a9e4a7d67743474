#include "ggmlx/backend/cpu/threads.h"

#include <chrono>
#include <thread>
#include <vector>

#ifdef GGMLX_OPENMP
#include <omp.h>
#endif

#include "ggmlx/core/parallel.h"
#include "ggmlx/core/spin.h"

namespace ggmlx {
namespace {

using Clock = std::chrono::steady_clock;

// A barrier between two ops of a busy step takes about a microsecond, waking a sleeper about fifty. So threads spin
// through the gaps of a step, giving way to others after a moment, and sleep when a device elsewhere takes its time.
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr auto kYield = std::chrono::milliseconds(2);

}  // namespace

Team::Team(int n_threads) : n_threads_(n_threads), oversubscribed_(n_threads > usable_cpus()) {}

void Team::wait_for_change(int generation) const noexcept {
    const auto changed = [&] { return generation_.load(std::memory_order_acquire) != generation; };
    const auto start = Clock::now();
    if (!oversubscribed_) {
        do {
            for (int i = 0; i < 64; ++i) {
                if (changed()) return;
                cpu_pause();
            }
        } while (Clock::now() - start < kSpin);
    }
    do {
        if (changed()) return;
        std::this_thread::yield();
    } while (Clock::now() - start < kYield);
    while (!changed()) generation_.wait(generation, std::memory_order_acquire);
}

void Team::barrier() noexcept {
    const int generation = generation_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < size_) return wait_for_change(generation);
    arrived_.store(0, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
}

#ifdef GGMLX_OPENMP
void Team::run(const std::function<void(int)>& body) {
#pragma omp parallel num_threads(n_threads_)
    {
        if (omp_get_thread_num() == 0) size_ = omp_get_num_threads();
#pragma omp barrier
        body(omp_get_thread_num());
    }
}
#else
void Team::run(const std::function<void(int)>& body) {
    size_ = n_threads_;
    std::vector<std::jthread> others;
    for (int index = 1; index < n_threads_; ++index) others.emplace_back([&body, index] { body(index); });
    body(0);
}
#endif

}  // namespace ggmlx
