// lay_out: what lives at the same time never overlaps, and memory is reused.

#include <gtest/gtest.h>

#include <random>

#include "ggmlx/core/error.h"
#include "ggmlx/placement/arena.h"

namespace ggmlx {
namespace {

TEST(Arena, BlocksThatLiveTogetherNeverOverlap) {
    std::mt19937 random(7);
    for (int round = 0; round < 50; ++round) {
        std::vector<ArenaBlock> blocks(1 + random() % 60);
        for (auto& b : blocks) {
            b.size_bytes = random() % 5000;
            b.first = static_cast<int32_t>(random() % 40);
            b.last = b.first + static_cast<int32_t>(random() % 10);
        }
        const uint64_t arena = lay_out(blocks);
        for (size_t i = 0; i < blocks.size(); ++i) {
            EXPECT_EQ(blocks[i].offset % kArenaAlignment, 0u);
            EXPECT_LE(blocks[i].offset + blocks[i].size_bytes, arena);
            for (size_t j = 0; j < i; ++j) {
                const bool in_time = blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
                const bool in_space = blocks[i].offset < blocks[j].offset + blocks[j].size_bytes &&
                                      blocks[j].offset < blocks[i].offset + blocks[i].size_bytes;
                EXPECT_FALSE(in_time && in_space && blocks[i].size_bytes && blocks[j].size_bytes);
            }
        }
    }
}

TEST(Arena, AChainNeedsTwoBlocksWhateverItsLength) {
    std::vector<ArenaBlock> chain;
    for (int32_t i = 0; i < 100; ++i) chain.push_back({1024, i, i + 1});
    EXPECT_EQ(lay_out(chain), 2048u);
}

TEST(Arena, SizesThatDoNotFit64BitsAreAnError) {
    std::vector<ArenaBlock> blocks = {{~uint64_t{0} - 10, 0, 0}};
    EXPECT_THROW(lay_out(blocks), Error);
    blocks = {{uint64_t{1} << 63, 0, 1}, {uint64_t{1} << 63, 0, 1}};
    EXPECT_THROW(lay_out(blocks), Error);
}

}  // namespace
}  // namespace ggmlx
