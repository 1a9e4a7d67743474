#pragma once
// Host memory as backends hand it out.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace ggmlx {

/// Zeroed, 64-byte aligned. Throws out_of_memory naming the device and the size.
std::shared_ptr<std::byte> alloc_host(std::string_view device, size_t size_bytes);

/// What this process can still allocate: MemAvailable, less if a memory cgroup leaves less.
uint64_t free_host_bytes();

}  // namespace ggmlx
