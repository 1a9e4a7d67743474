#pragma once
// How many threads suit this machine and which processors they use: one per physical core, never one per SMT sibling
// (siblings share what limits the kernels), and of a hybrid processor the performance cores alone, since a team waits
// for its slowest member. Also the machine's memory nodes, and threads held on processors.
//
// Functions that take a sys_root read "" as the real /sys; tests give a folder that holds a fake one.

#include <sched.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ggmlx {

/// What a caller wants of choose_threads.
struct ThreadWish {
    int n_threads = 0;    ///< 0: as many as suit
    int n_reserved = 0;   ///< cores to leave free when n_threads is 0, for threads that serve a GPU
    bool pin = true;      ///< hold threads on their processors, where that is safe
    bool spread = false;  ///< take cores from all memory nodes in turn, and pin any number of threads to them
};

struct ThreadChoice {
    int n_threads = 1;
    std::string reason;     ///< for people: "16 physical cores", "a cgroup quota of 7 processors"
    std::vector<int> cpus;  ///< the processor of each thread; empty: threads are not pinned
};

/// `allowed`: processors of the affinity mask; `usable`: how many of them a cgroup quota leaves (usable_cpus()). Where
/// /sys says nothing, every allowed processor counts as a core.
///
/// Threads are pinned only if each has a core of its own, no quota hands out other processors, and the team takes all
/// cores but the reserved ones: two programs that each want a few cores would otherwise pin themselves to the same.
ThreadChoice choose_threads(const std::string& sys_root, std::span<const int> allowed, int usable,
                            const ThreadWish& wish = {});

/// A memory node of the machine. Some have no processors (memory on a card or a bus), some no memory.
struct MemoryNode {
    int id = 0;
    std::vector<int> cpus;
    uint64_t memory_bytes = 0;

    bool operator==(const MemoryNode&) const = default;
};
/// By id; empty where the kernel knows no nodes.
std::vector<MemoryNode> memory_nodes(const std::string& sys_root);

/// The processors of this thread's affinity mask.
std::vector<int> allowed_cpus();

/// "0-3,8,10-11" as numbers; what cannot be read is left out.
std::vector<int> parse_cpu_list(const std::string& text);

/// Holds the calling thread on one processor. False if the system refuses; the thread then stays as it was.
bool pin_this_thread(int cpu) noexcept;

/// The processors of a team's threads. Threads come to their processor when they first enter, and are freed again when
/// they enter a team that pins nobody: an OpenMP thread may serve several teams, one after the other.
class Pins {
  public:
    /// cpus: by thread; empty: nobody is pinned.
    explicit Pins(std::vector<int> cpus) : cpus_(std::move(cpus)), free_(allowed_cpus()) {}
    /// Called by thread `index` at the beginning of its work; cheap from the second time on.
    void enter(int index) const noexcept;

  private:
    std::vector<int> cpus_, free_;
};

/// For a thread that joins a team for a moment only: takes it back to where it could run before. Without that, threads
/// it starts later would inherit its one processor.
class AffinityKept {
  public:
    AffinityKept() noexcept;
    ~AffinityKept();
    AffinityKept(const AffinityKept&) = delete;
    AffinityKept& operator=(const AffinityKept&) = delete;

  private:
    cpu_set_t mask_;
    bool known_;
    int pinned_to_;
};

}  // namespace ggmlx
