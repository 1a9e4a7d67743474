#include "ggmlx/placement/arena.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "ggmlx/core/error.h"
#include "ggmlx/core/math.h"

namespace ggmlx {
namespace {

bool overlap_in_time(const ArenaBlock& a, const ArenaBlock& b) { return a.first <= b.last && b.first <= a.last; }

uint64_t padded_size(const ArenaBlock& block) {
    const auto size = checked_round_up(block.size_bytes, kArenaAlignment);
    require(size.has_value(), ErrorKind::OutOfMemory, "a tensor of {} bytes does not fit any memory", block.size_bytes);
    return *size;
}

}  // namespace

uint64_t lay_out(std::span<ArenaBlock> blocks) {
    std::vector<size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return blocks[a].size_bytes > blocks[b].size_bytes; });

    uint64_t arena = 0;
    std::vector<size_t> placed;  // by offset
    for (size_t i : order) {
        ArenaBlock& block = blocks[i];
        const uint64_t size = padded_size(block);
        uint64_t offset = 0;
        for (size_t j : placed) {
            const ArenaBlock& other = blocks[j];
            if (!overlap_in_time(block, other)) continue;
            if (offset + size <= other.offset) break;
            offset = std::max(offset, other.offset + padded_size(other));
        }
        block.offset = offset;
        const auto end = checked_add(offset, size);
        require(end.has_value(), ErrorKind::OutOfMemory, "the temporary memory of a step does not fit 64 bits");
        arena = std::max(arena, *end);
        placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                       [&](size_t a, size_t b) { return blocks[a].offset < blocks[b].offset; }),
                      i);
    }
    return arena;
}

}  // namespace ggmlx
