#include "ggmlx/backend/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "ggmlx/core/buffer.h"
#include "ggmlx/core/error.h"

namespace ggmlx {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

/// A number in a file; kUnlimited when there is none ("max", or no such file).
uint64_t number_in(const char* path) {
    std::ifstream file(path);
    uint64_t value = 0;
    return file >> value ? value : kUnlimited;
}

uint64_t left_of(uint64_t limit, uint64_t used) {
    if (limit == kUnlimited || used == kUnlimited) return kUnlimited;
    return limit > used ? limit - used : 0;
}

/// What the memory cgroup (v2, else v1) leaves.
uint64_t cgroup_free_bytes() {
    return std::min(left_of(number_in("/sys/fs/cgroup/memory.max"), number_in("/sys/fs/cgroup/memory.current")),
                    left_of(number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
                            number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes")));
}

uint64_t available_bytes() {
    std::ifstream info("/proc/meminfo");
    std::string key, unit;
    for (uint64_t kib; info >> key >> kib; std::getline(info, unit))
        if (key == "MemAvailable:") return kib << 10;
    return 0;
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

uint64_t free_host_bytes() { return std::min(available_bytes(), cgroup_free_bytes()); }

}  // namespace ggmlx
