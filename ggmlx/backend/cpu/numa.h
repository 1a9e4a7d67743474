#pragma once
// Memory nodes: which of them a policy uses, and memory bound to them. On a machine of several nodes (sockets, or parts
// of one) each node's memory is fast for its own processors, and only all nodes together give the machine's bandwidth.
//
// Binding needs libnuma (GGMLX_NUMA) and a kernel that lets this process choose; where either is missing everything
// still works, with memory where the kernel puts it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ggmlx/backend/cpu/topology.h"

namespace ggmlx {

enum class NumaPolicy {
    Off,         ///< memory where the kernel puts it: on the node of the thread that writes it first
    Interleave,  ///< memory in turn on all nodes, page by page; threads spread over the nodes and pinned
    Shard,       ///< every expert's intermediate dimension dealt out to the nodes (expert_shards.h), and each node's
                 ///< threads compute its part; everything else as Interleave
};
/// "off", "interleave", "shard".
std::string_view name(NumaPolicy policy);
std::optional<NumaPolicy> numa_policy_from_name(std::string_view name);

/// What a policy comes to on this machine.
struct NumaPlan {
    NumaPolicy policy = NumaPolicy::Off;
    std::vector<int> nodes{};  ///< those that share the memory; of none with Off
    std::string reason{};      ///< for people: "one node", "over 2 nodes", why the wish cannot be had
    int n_shards = 1;          ///< with Shard: experts are dealt out to the first so many nodes
};

/// Nodes count that have memory and allowed processors of their own: memory without processors sits on a card or a slow
/// bus, and is used by nobody here. `can_bind`: can_bind_memory(), given so that tests need no such machine.
NumaPlan plan_numa(NumaPolicy wanted, const std::string& sys_root, std::span<const int> allowed, bool can_bind);

/// The shard that each thread of a team works on; empty without shards. A pinned thread works on that of its node,
/// threads of nodes without one and those that are not pinned on all in turn.
std::vector<int> shards_of_threads(const NumaPlan& plan, const ThreadChoice& threads, const std::string& sys_root);

/// Whether libnuma is built in and the kernel has the calls it needs.
bool can_bind_memory() noexcept;
/// Whether libnuma is built in.
bool has_libnuma() noexcept;

/// Pages of [begin, begin + size) that nobody has written yet come from these nodes in turn, or from this one. begin is
/// the start of a page. False if the kernel refuses (a container without the right to): the memory is usable all the
/// same.
bool interleave_memory(void* begin, size_t size_bytes, std::span<const int> nodes) noexcept;
bool bind_memory(void* begin, size_t size_bytes, int node) noexcept;

/// What a node can still give: free memory and pages of files, which the kernel takes back. Memory bound to a node that
/// has no more of it ends the process. The largest number where /sys says nothing.
uint64_t free_bytes_of_node(const std::string& sys_root, int node);

/// The node of the page at `address`, which is faulted in if it was not; -1 if the kernel does not tell.
int node_of_page(const void* address) noexcept;

}  // namespace ggmlx
