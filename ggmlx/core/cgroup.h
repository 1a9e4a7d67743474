#pragma once
// What control groups leave this process: a container's or a service's share of processors and memory. Every group from
// the process's own up to the root counts, in version 2 and in version 1, since a limit anywhere on the way holds.

#include <cstdint>
#include <optional>
#include <string>

namespace ggmlx {

/// Whole processors of the smallest quota, rounded down and at least 1; nothing if there is none.
/// root is "" for the real /proc and /sys; tests give a folder that holds fake ones.
std::optional<int> cgroup_cpu_quota(const std::string& root = "");

/// Bytes until the first memory limit; nothing if there is none.
std::optional<uint64_t> cgroup_free_memory(const std::string& root = "");

}  // namespace ggmlx
