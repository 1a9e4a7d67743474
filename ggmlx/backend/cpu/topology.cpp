#include "ggmlx/backend/cpu/topology.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

#include "ggmlx/core/parallel.h"

namespace ggmlx {
namespace {

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// The processors that share a core with `cpu`, as the system spells them: equal for siblings.
std::string core_of(const std::string& sys_root, int cpu) {
    const std::string folder = sys_root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    for (const char* file : {"core_cpus_list", "thread_siblings_list"})
        if (std::string siblings = first_line(folder + file); !siblings.empty()) return siblings;
    return std::to_string(cpu);
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
    std::vector<int> cpus;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        int first = 0, last = 0;
        const char* end = part.data() + part.size();
        auto [dash, error] = std::from_chars(part.data(), end, first);
        if (error != std::errc{}) continue;
        last = first;
        if (dash != end && *dash == '-') std::from_chars(dash + 1, end, last);
        for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    }
    return cpus;
}

ThreadChoice choose_threads(const std::string& sys_root, std::span<const int> allowed, int usable) {
    std::vector<int> cpus(allowed.begin(), allowed.end());
    // Hybrid Intel processors list their performance cores here; others have no such file.
    const std::vector<int> performance = parse_cpu_list(first_line(sys_root + "/sys/devices/cpu_core/cpus"));
    std::vector<int> fast;
    std::copy_if(cpus.begin(), cpus.end(), std::back_inserter(fast),
                 [&](int cpu) { return std::find(performance.begin(), performance.end(), cpu) != performance.end(); });
    const bool hybrid = !fast.empty() && fast.size() < cpus.size();
    if (hybrid) cpus = fast;

    std::set<std::string> cores;
    for (int cpu : cpus) cores.insert(core_of(sys_root, cpu));
    const int n_cores = std::max(1, static_cast<int>(cores.size()));
    if (usable < n_cores) return {std::max(1, usable), "a cgroup quota of " + std::to_string(usable) + " processors"};
    return {n_cores, std::to_string(n_cores) + (hybrid ? " performance cores" : " physical cores")};
}

std::vector<int> allowed_cpus() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    std::vector<int> cpus;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
    }
    for (int cpu = 0; cpus.empty() && cpu < usable_cpus(); ++cpu) cpus.push_back(cpu);
    return cpus;
}

}  // namespace ggmlx
