#pragma once
// How many threads suit this machine: one per physical core, never one per SMT sibling (siblings share what limits the
// kernels), and of a hybrid processor the performance cores alone, since a team waits for its slowest member.

#include <span>
#include <string>
#include <vector>

namespace ggmlx {

struct ThreadChoice {
    int n_threads = 1;
    std::string reason;  ///< for people: "16 physical cores", "a cgroup quota of 7 processors"
};

/// `allowed`: processors of the affinity mask; `usable`: how many of them a cgroup quota leaves (usable_cpus()).
/// sys_root is "" for the real /sys; tests give a folder that holds a fake one. Where /sys says nothing, every allowed
/// processor counts as a core.
ThreadChoice choose_threads(const std::string& sys_root, std::span<const int> allowed, int usable);

/// The processors of this thread's affinity mask.
std::vector<int> allowed_cpus();

/// "0-3,8,10-11" as numbers; what cannot be read is left out.
std::vector<int> parse_cpu_list(const std::string& text);

}  // namespace ggmlx
