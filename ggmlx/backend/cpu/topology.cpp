#include "ggmlx/backend/cpu/topology.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
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

struct Cores {
    std::vector<int> cpus;  ///< the first allowed processor of each core, in increasing order
    bool hybrid = false;    ///< slower cores were left out
};

Cores cores_of(const std::string& sys_root, std::span<const int> allowed) {
    // Hybrid Intel processors list their performance cores here; others have no such file.
    const std::vector<int> performance = parse_cpu_list(first_line(sys_root + "/sys/devices/cpu_core/cpus"));
    std::vector<int> cpus;
    std::copy_if(allowed.begin(), allowed.end(), std::back_inserter(cpus),
                 [&](int cpu) { return std::find(performance.begin(), performance.end(), cpu) != performance.end(); });
    Cores cores;
    cores.hybrid = !cpus.empty() && cpus.size() < allowed.size();
    if (!cores.hybrid) cpus.assign(allowed.begin(), allowed.end());
    std::set<std::string> seen;
    for (int cpu : cpus)
        if (seen.insert(core_of(sys_root, cpu)).second) cores.cpus.push_back(cpu);
    return cores;
}

/// The same processors, one from each node in turn; those of no node come last.
std::vector<int> dealt_over_nodes(const std::vector<int>& cpus, const std::vector<MemoryNode>& nodes) {
    std::vector<std::vector<int>> lists(nodes.size() + 1);
    for (int cpu : cpus) {
        const auto home = std::find_if(nodes.begin(), nodes.end(), [&](const MemoryNode& node) {
            return std::find(node.cpus.begin(), node.cpus.end(), cpu) != node.cpus.end();
        });
        lists[static_cast<size_t>(home - nodes.begin())].push_back(cpu);
    }
    std::vector<int> dealt;
    for (size_t i = 0; dealt.size() + lists.back().size() < cpus.size(); ++i)
        for (size_t node = 0; node + 1 < lists.size(); ++node)
            if (i < lists[node].size()) dealt.push_back(lists[node][i]);
    dealt.insert(dealt.end(), lists.back().begin(), lists.back().end());
    return dealt;
}

/// "Node 0 MemTotal:  1024 kB" in a node's meminfo.
uint64_t total_memory(const std::string& path) {
    std::ifstream file(path);
    for (std::string word; file >> word;)
        if (uint64_t kib = 0; word == "MemTotal:" && file >> kib) return kib << 10;
    return 0;
}

/// The processor this thread was pinned to; -1: none.
thread_local int pinned_to = -1;

bool set_affinity(std::span<const int> cpus) noexcept {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int cpu : cpus)
        if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &mask);
    return sched_setaffinity(0, sizeof mask, &mask) == 0;
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

ThreadChoice choose_threads(const std::string& sys_root, std::span<const int> allowed, int usable,
                            const ThreadWish& wish) {
    auto [cores, hybrid] = cores_of(sys_root, allowed);
    if (wish.spread) cores = dealt_over_nodes(cores, memory_nodes(sys_root));
    const int n_cores = std::max(1, static_cast<int>(cores.size()));
    const int n_free = std::max(1, std::min(n_cores, usable) - wish.n_reserved);
    ThreadChoice choice;
    choice.n_threads = wish.n_threads > 0 ? wish.n_threads : n_free;
    choice.reason = wish.n_threads > 0 ? "as asked"
                    : usable < n_cores ? "a cgroup quota of " + std::to_string(usable) + " processors"
                                       : std::to_string(n_cores) + (hybrid ? " performance cores" : " physical cores");
    if (wish.n_threads == 0 && wish.n_reserved > 0) choice.reason += ", one left to the GPU";
    const auto n = static_cast<size_t>(choice.n_threads);
    const bool takes_all = usable >= n_cores && choice.n_threads == n_free;
    if (wish.pin && n <= cores.size() && (takes_all || wish.spread)) {
        choice.cpus = cores;
        choice.cpus.resize(n);
    }
    return choice;
}

std::vector<MemoryNode> memory_nodes(const std::string& sys_root) {
    const std::string folder = sys_root + "/sys/devices/system/node";
    std::vector<MemoryNode> nodes;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        const std::string name = entry.path().filename().string();
        constexpr std::string_view kPrefix = "node";
        MemoryNode node;
        const char* end = name.data() + name.size();
        if (!name.starts_with(kPrefix) || std::from_chars(name.data() + kPrefix.size(), end, node.id).ptr != end ||
            name.size() == kPrefix.size())
            continue;
        node.cpus = parse_cpu_list(first_line(entry.path().string() + "/cpulist"));
        node.memory_bytes = total_memory(entry.path().string() + "/meminfo");
        nodes.push_back(std::move(node));
    }
    std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    return nodes;
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

bool pin_this_thread(int cpu) noexcept {
    if (!set_affinity(std::span(&cpu, 1))) return false;
    pinned_to = cpu;
    return true;
}

void Pins::enter(int index) const noexcept {
    const int cpu = static_cast<size_t>(index) < cpus_.size() ? cpus_[static_cast<size_t>(index)] : -1;
    if (cpu == pinned_to) return;
    if (cpu >= 0)
        pin_this_thread(cpu);
    else if (set_affinity(free_))
        pinned_to = -1;
}

AffinityKept::AffinityKept() noexcept
    : known_(sched_getaffinity(0, sizeof mask_, &mask_) == 0), pinned_to_(pinned_to) {}

AffinityKept::~AffinityKept() {
    if (known_ && pinned_to != pinned_to_ && sched_setaffinity(0, sizeof mask_, &mask_) == 0) pinned_to = pinned_to_;
}

}  // namespace ggmlx
