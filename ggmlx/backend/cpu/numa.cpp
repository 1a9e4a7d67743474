#include "ggmlx/backend/cpu/numa.h"

#ifdef GGMLX_HAVE_NUMA
#include <numa.h>
#include <numaif.h>
#endif

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

#include "ggmlx/backend/expert_shards.h"

namespace ggmlx {
namespace {

constexpr std::array<std::string_view, 3> kPolicyNames = {"off", "interleave", "shard"};

/// The nodes that a cpuset lets this process allocate on; empty: all.
std::vector<int> nodes_of_cpuset(const std::string& root) {
    constexpr std::string_view kKey = "Mems_allowed_list:";
    std::ifstream status(root + "/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(kKey)) {
            const size_t digits = line.find_first_not_of(" \t", kKey.size());
            return digits == line.npos ? std::vector<int>{} : parse_cpu_list(line.substr(digits));
        }
    return {};
}

bool contains(std::span<const int> list, int value) { return std::find(list.begin(), list.end(), value) != list.end(); }

/// Nodes with memory and processors for this process.
std::vector<int> nodes_at_work(const std::string& root, std::span<const int> allowed) {
    const std::vector<int> cpuset = nodes_of_cpuset(root);
    std::vector<int> ids;
    for (const MemoryNode& node : memory_nodes(root)) {
        const bool computes =
            std::any_of(node.cpus.begin(), node.cpus.end(), [&](int c) { return contains(allowed, c); });
        if (computes && node.memory_bytes > 0 && (cpuset.empty() || contains(cpuset, node.id))) ids.push_back(node.id);
    }
    return ids;
}

#ifdef GGMLX_HAVE_NUMA
bool set_policy(void* begin, size_t size_bytes, int mode, std::span<const int> nodes) noexcept {
    constexpr int kWordBits = 8 * sizeof(unsigned long), kMaxNodes = 1024;
    std::array<unsigned long, kMaxNodes / kWordBits> mask{};
    for (int node : nodes)
        if (node >= 0 && node < kMaxNodes) mask[static_cast<size_t>(node / kWordBits)] |= 1UL << (node % kWordBits);
    return mbind(begin, size_bytes, mode, mask.data(), kMaxNodes, 0) == 0;
}
#endif

}  // namespace

std::string_view name(NumaPolicy policy) { return kPolicyNames[static_cast<size_t>(policy)]; }

std::optional<NumaPolicy> numa_policy_from_name(std::string_view wanted) {
    const auto found = std::find(kPolicyNames.begin(), kPolicyNames.end(), wanted);
    if (found == kPolicyNames.end()) return std::nullopt;
    return static_cast<NumaPolicy>(found - kPolicyNames.begin());
}

NumaPlan plan_numa(NumaPolicy wanted, const std::string& sys_root, std::span<const int> allowed, bool can_bind) {
    const std::vector<int> nodes = nodes_at_work(sys_root, allowed);
    if (nodes.size() <= 1) return {NumaPolicy::Off, {}, "one node"};
    const std::string count = std::to_string(nodes.size()) + " nodes";
    if (wanted == NumaPolicy::Off)
        return {NumaPolicy::Off, {}, count + "; --numa interleave or shard would use all of them"};
    if (!has_libnuma()) return {NumaPolicy::Off, {}, count + ", but this build has no libnuma"};
    if (!can_bind) return {NumaPolicy::Off, {}, count + ", but this system does not let programs choose one"};
    if (wanted == NumaPolicy::Interleave) return {wanted, nodes, "over " + count};
    const int n_shards = shard_count(static_cast<int>(nodes.size()));
    const bool all = n_shards == static_cast<int>(nodes.size());
    return {wanted, nodes, "over " + (all ? count : std::to_string(n_shards) + " of " + count), n_shards};
}

std::vector<int> shards_of_threads(const NumaPlan& plan, const ThreadChoice& threads, const std::string& sys_root) {
    if (plan.n_shards == 1) return {};
    const std::vector<MemoryNode> machine = memory_nodes(sys_root);
    std::vector<int> shards;
    for (int thread = 0; thread < threads.n_threads; ++thread) {
        int shard = thread % plan.n_shards;
        for (int i = 0; i < plan.n_shards && !threads.cpus.empty(); ++i)
            for (const MemoryNode& node : machine)
                if (node.id == plan.nodes[static_cast<size_t>(i)] &&
                    contains(node.cpus, threads.cpus[static_cast<size_t>(thread)]))
                    shard = i;
        shards.push_back(shard);
    }
    return shards;
}

uint64_t free_bytes_of_node(const std::string& sys_root, int node) {
    std::ifstream file(sys_root + "/sys/devices/system/node/node" + std::to_string(node) + "/meminfo");
    uint64_t total = 0;
    bool known = false;
    for (std::string word; file >> word;) {
        uint64_t kib = 0;
        if ((word == "MemFree:" || word == "Active(file):" || word == "Inactive(file):") && file >> kib) {
            total += kib << 10;
            known = true;
        }
    }
    return known ? total : std::numeric_limits<uint64_t>::max();
}

#ifdef GGMLX_HAVE_NUMA
bool has_libnuma() noexcept { return true; }
bool can_bind_memory() noexcept { return numa_available() >= 0; }

bool interleave_memory(void* begin, size_t size_bytes, std::span<const int> nodes) noexcept {
    return set_policy(begin, size_bytes, MPOL_INTERLEAVE, nodes);
}

bool bind_memory(void* begin, size_t size_bytes, int node) noexcept {
    return set_policy(begin, size_bytes, MPOL_BIND, std::span(&node, 1));
}

int node_of_page(const void* address) noexcept {
    int node = -1;
    const long error = get_mempolicy(&node, nullptr, 0, const_cast<void*>(address), MPOL_F_NODE | MPOL_F_ADDR);
    return error == 0 ? node : -1;
}
#else
bool has_libnuma() noexcept { return false; }
bool can_bind_memory() noexcept { return false; }
bool interleave_memory(void*, size_t, std::span<const int>) noexcept { return false; }
bool bind_memory(void*, size_t, int) noexcept { return false; }
int node_of_page(const void*) noexcept { return -1; }
#endif

}  // namespace ggmlx
