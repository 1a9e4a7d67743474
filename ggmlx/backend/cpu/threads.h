#pragma once
// The team of threads that runs a step. It is formed once per step and stays together: between ops its threads meet at
// a barrier that spins for a short while and then sleeps, and inside an op they claim pieces of work from one counter.
// Runs on OpenMP (this room's threads.cpp is the only includer of omp.h), or on std::jthread where OpenMP was left out,
// which is what ThreadSanitizer needs.

#include <atomic>
#include <cstdint>
#include <functional>

namespace ggmlx {

class Team {
  public:
    /// n_threads >= 1.
    explicit Team(int n_threads);
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    /// Calls body(index) on all threads at once, index 0 on the caller, and returns when all have returned. body must
    /// not throw. Not reentrant, and for one caller at a time.
    void run(const std::function<void(int index)>& body);
    /// The number of threads asked for; the system may give run() fewer.
    int n_threads() const { return n_threads_; }

    // --- for use inside run(), by all its threads alike ---
    /// Threads in this run.
    int size() const { return size_; }
    /// Returns when all threads have come here; what they wrote before is then visible to all.
    void barrier() noexcept;
    /// Calls f(begin, end) for pieces of [0, n) of `grain` items, in increasing order, each on the thread that claims
    /// it; ends with a barrier.
    template <class F>
    void share(int64_t n, int64_t grain, F f) {
        for (int64_t begin; (begin = next_.fetch_add(grain, std::memory_order_relaxed)) < n;)
            f(begin, n - begin < grain ? n : begin + grain);
        barrier();
    }

  private:
    void wait_for_change(int generation) const noexcept;

    const int n_threads_;
    const bool oversubscribed_;  ///< more threads than processors: never spin without yielding
    int size_ = 1;
    alignas(64) std::atomic<int64_t> next_{0};  ///< first item nobody claimed; 0 again after every barrier
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<int> generation_{0};  ///< barriers passed
};

}  // namespace ggmlx
