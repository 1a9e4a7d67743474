#pragma once
// Memory of one device over one step: blocks that live from one round (rounds.h) to another get offsets; blocks that
// live at the same time never overlap.

#include <cstdint>
#include <span>

namespace ggmlx {

inline constexpr uint64_t kArenaAlignment = 64;

struct ArenaBlock {
    uint64_t size_bytes = 0;
    int32_t first = 0, last = 0;  ///< rounds of its life, both inclusive
    uint64_t offset = 0;          ///< set by lay_out, a multiple of kArenaAlignment
};

/// Sets every block's offset and returns the arena's size. Largest blocks first, each at the lowest offset where no
/// block that lives at the same time lies.
uint64_t lay_out(std::span<ArenaBlock> blocks);

}  // namespace ggmlx
