#include "ggmlx/file/checksum.h"

#include <fmt/core.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ggmlx {

static_assert(sizeof(Checksum) == 16);

std::string Checksum::to_string() const { return fmt::format("{:016x}{:016x}", high, low); }

Checksum xxh3(std::span<const std::byte> bytes) {
    const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
    return {hash.low64, hash.high64};
}

Checksum combine(std::span<const Checksum> slices) {
    return slices.size() == 1 ? slices.front() : xxh3(std::as_bytes(slices));
}

}  // namespace ggmlx
