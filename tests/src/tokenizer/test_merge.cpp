#include "src/tokenizer/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace llm {
namespace {

/// The definition, as slowly as it can be written.
std::vector<TokenId> merge_by_definition(const MergeTable& merges, std::vector<TokenId> symbols) {
    for (;;) {
        const Merge* best = nullptr;
        size_t at = 0;
        for (size_t i = 0; i + 1 < symbols.size(); ++i) {
            const Merge* m =
                merges.find(pair_key(static_cast<uint32_t>(symbols[i]), static_cast<uint32_t>(symbols[i + 1])));
            if (m && (!best || m->rank < best->rank)) best = m, at = i;
        }
        if (!best) return symbols;
        symbols[at] = best->id;
        symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(at) + 1);
    }
}

/// Merges of random tokens in a random order: also such where a merge makes one of lower rank possible.
MergeTable random_merges(std::mt19937& random, TokenId n_characters, uint32_t n_merges) {
    std::vector<uint32_t> ranks(n_merges);
    for (uint32_t i = 0; i < n_merges; ++i) ranks[i] = i;
    std::shuffle(ranks.begin(), ranks.end(), random);
    MergeTable merges;
    TokenId next = n_characters;
    for (const uint32_t rank : ranks) {
        const auto a = static_cast<uint32_t>(random() % static_cast<uint32_t>(next));
        const auto b = static_cast<uint32_t>(random() % static_cast<uint32_t>(next));
        if (merges.find(pair_key(a, b))) continue;
        merges.set(pair_key(a, b), {rank, next++});
    }
    return merges;
}

TEST(Merge, BothWaysFollowTheDefinition) {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        const auto n_characters = static_cast<TokenId>(1 + random() % 4);
        const uint32_t n_merges = 1 + random() % 60;
        const MergeTable merges = random_merges(random, n_characters, n_merges);
        MergeQueue queue(n_merges);
        for (int word = 0; word < 5; ++word) {
            std::vector<TokenId> symbols(random() % 200);
            for (TokenId& s : symbols) s = static_cast<TokenId>(random() % static_cast<uint32_t>(n_characters));
            const auto expected = merge_by_definition(merges, symbols);
            auto by_scan = symbols, by_queue = symbols;
            merge_short(merges, by_scan);
            merge_long(merges, queue, by_queue);
            ASSERT_EQ(by_scan, expected);
            ASSERT_EQ(by_queue, expected);
        }
    }
}

TEST(Merge, WorkIsLinearInTheWord) {
    // Every symbol is a candidate once, and every merge, of which there are less than symbols, makes two new ones.
    std::mt19937 random(3);
    const MergeTable merges = random_merges(random, 3, 400);
    MergeQueue queue(400);
    for (const size_t n : {1000u, 100000u})
        for (const uint32_t n_different : {1u, 3u}) {
            std::vector<TokenId> symbols(n);
            for (TokenId& s : symbols) s = static_cast<TokenId>(random() % n_different);
            EXPECT_LT(merge_long(merges, queue, symbols), 3 * n);
        }
}

}  // namespace
}  // namespace llm
