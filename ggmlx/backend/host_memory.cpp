#include "ggmlx/backend/host_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "ggmlx/core/buffer.h"
#include "ggmlx/core/cgroup.h"
#include "ggmlx/core/error.h"

namespace ggmlx {
namespace {

/// The number of a line "Key:   123 kB" in a file of /proc, in bytes; 0 without such a line.
uint64_t kib_line(const char* path, std::string_view wanted) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(wanted)) return std::strtoull(line.c_str() + wanted.size(), nullptr, 10) << 10;
    return 0;
}

/// Raises this process's own limit on locked memory as far as it may.
void raise_lock_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_MEMLOCK, &limit);
}

}  // namespace

std::shared_ptr<std::byte> alloc_host(std::string_view device, size_t size_bytes) {
    try {
        auto buffer = std::make_shared<Buffer>(std::max<size_t>(size_bytes, 1));
        return {buffer, buffer->data()};
    } catch (const Error& e) {
        fail(e.kind(), "{}: {}", device, e.what());
    }
}

uint64_t free_host_bytes() {
    const uint64_t available = kib_line("/proc/meminfo", "MemAvailable:");
    return std::min(available, cgroup_free_memory().value_or(available));
}

std::string lock_memory(const void* begin, size_t size_bytes) {
    raise_lock_limit();
    if (size_bytes == 0 || mlock(begin, size_bytes) == 0) return "";
    const int error = errno;
    rlimit limit{};
    if (error != ENOMEM || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return std::strerror(error);
    return fmt::format("the limit is {} KiB; raise it with `ulimit -l unlimited` as root", limit.rlim_cur >> 10);
}

uint64_t huge_page_bytes() { return kib_line("/proc/self/smaps_rollup", "AnonHugePages:"); }

bool gives_huge_pages(const std::string& sys_root) {
    std::ifstream file(sys_root + "/sys/kernel/mm/transparent_hugepage/enabled");
    std::string modes;
    std::getline(file, modes);
    return modes.find("[always]") != modes.npos || modes.find("[madvise]") != modes.npos;
}

}  // namespace ggmlx
