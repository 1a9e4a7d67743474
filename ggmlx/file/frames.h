#pragma once
// zstd frames of known size.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ggmlx {

/// One frame that states its content's size.
std::vector<std::byte> compress_frame(std::span<const std::byte> raw);

/// Upper bound of compress_frame().size().
uint64_t compressed_bound(uint64_t raw_bytes);

/// Expands the frame at the start of `frames`, which must hold exactly dst.size() bytes, and returns what follows it.
/// Throws corrupt_file; `what` (file and entry) begins the message.
std::span<const std::byte> expand_frame(std::span<const std::byte> frames, std::span<std::byte> dst,
                                        const std::string& what);

}  // namespace ggmlx
