#pragma once
// XXH3-128 checksums of bytes and of sliced tensors.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ggmlx/file/format.h"

namespace ggmlx {

/// XXH3-128, high half first in text form.
struct Checksum {
    uint64_t low = 0, high = 0;
    Checksum() = default;
    Checksum(uint64_t low_half, uint64_t high_half) : low(low_half), high(high_half) {}
    explicit Checksum(const format::Digest& d) : Checksum(d.low, d.high) {}
    format::Digest digest() const { return {low, high}; }
    bool operator==(const Checksum&) const = default;
    /// 32 hexadecimal digits, as xxhsum prints them.
    std::string to_string() const;
};
Checksum xxh3(std::span<const std::byte> bytes);

/// Checksum of a tensor from those of its slices: of the one slice, or of the slices' checksums one after the other
/// (16 bytes each, low half first, little-endian). So slices may be written and verified in any order.
Checksum combine(std::span<const Checksum> slices);

}  // namespace ggmlx
