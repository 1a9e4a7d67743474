#include "ggmlx/core/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

namespace ggmlx {
namespace {

/// This process's group of a controller and all groups above it, as folders. An empty controller means version 2.
std::vector<std::string> group_folders(const std::string& root, const std::string& controller) {
    std::string path = "/";  // in a container the group's files often lie at the top, whatever its path says
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {  // "4:cpu,cpuacct:/user.slice" or "0::/user.slice"
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == line.npos) continue;
        std::istringstream names(line.substr(first + 1, second - first - 1));
        std::string name;
        bool found = controller.empty() && second == first + 1;
        while (std::getline(names, name, ',')) found |= !controller.empty() && name == controller;
        if (found) path = line.substr(second + 1);
    }
    std::vector<std::string> folders;
    const std::string top = root + "/sys/fs/cgroup" + (controller.empty() ? "" : "/" + controller);
    while (path.size() > 1) {
        folders.push_back(top + path);
        path.erase(path.rfind('/'));
    }
    folders.push_back(top);
    return folders;
}

template <class T>
std::optional<T> number_in(const std::string& path) {
    std::ifstream file(path);
    T value = 0;
    return file >> value ? std::optional(value) : std::nullopt;  // also nothing for "max"
}

template <class T>
void lower(std::optional<T>& least, T value) {
    least = least ? std::min(*least, value) : value;
}

void lower_to_quota(std::optional<int>& cpus, std::optional<double> used, std::optional<double> period) {
    constexpr double kMost = 1 << 20;
    if (used && period && *used > 0 && *period > 0)
        lower(cpus, std::max(1, static_cast<int>(std::min(kMost, *used / *period))));
}

void lower_to_rest(std::optional<uint64_t>& bytes, std::optional<uint64_t> limit, std::optional<uint64_t> used) {
    constexpr uint64_t kUnlimited = uint64_t{1} << 62;  // version 1 writes a number near 2^63 for "no limit"
    if (limit && used && *limit < kUnlimited) lower(bytes, *limit > *used ? *limit - *used : 0);
}

}  // namespace

std::optional<int> cgroup_cpu_quota(const std::string& root) {
    std::optional<int> cpus;
    for (const std::string& folder : group_folders(root, "")) {
        std::ifstream file(folder + "/cpu.max");
        std::string used;
        double period = 0;
        if (file >> used >> period && used != "max") lower_to_quota(cpus, std::atof(used.c_str()), period);
    }
    for (const std::string& folder : group_folders(root, "cpu"))
        lower_to_quota(cpus, number_in<double>(folder + "/cpu.cfs_quota_us"),
                       number_in<double>(folder + "/cpu.cfs_period_us"));
    return cpus;
}

std::optional<uint64_t> cgroup_free_memory(const std::string& root) {
    std::optional<uint64_t> bytes;
    for (const std::string& folder : group_folders(root, ""))
        lower_to_rest(bytes, number_in<uint64_t>(folder + "/memory.max"),
                      number_in<uint64_t>(folder + "/memory.current"));
    for (const std::string& folder : group_folders(root, "memory"))
        lower_to_rest(bytes, number_in<uint64_t>(folder + "/memory.limit_in_bytes"),
                      number_in<uint64_t>(folder + "/memory.usage_in_bytes"));
    return bytes;
}

}  // namespace ggmlx
