#pragma once
// Host memory as backends hand it out.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ggmlx {

/// Zeroed, 64-byte aligned. Throws out_of_memory naming the device and the size.
std::shared_ptr<std::byte> alloc_host(std::string_view device, size_t size_bytes);

/// What this process can still allocate: MemAvailable, less if a memory cgroup leaves less.
uint64_t free_host_bytes();

/// Keeps memory from being paged out, and brings it in if it was not. Returns why that cannot be; empty: done.
std::string lock_memory(const void* begin, size_t size_bytes);

/// Bytes of this process's anonymous memory that lie in 2 MB pages now.
uint64_t huge_page_bytes();

/// Whether the system gives 2 MB pages to programs that ask: /sys/kernel/mm/transparent_hugepage. sys_root is "" but in
/// tests.
bool gives_huge_pages(const std::string& sys_root = "");

}  // namespace ggmlx
