#include "src/tokenizer/piece_trie.h"

#include <gtest/gtest.h>

#include <set>

namespace llm {
namespace {

/// All strings that text begins with, in the order of their lengths.
std::vector<int32_t> prefixes(const PieceTrie& trie, std::string_view text) {
    std::vector<int32_t> found;
    uint32_t node = PieceTrie::kRoot;
    for (const char byte : text) {
        node = trie.child(node, byte);
        if (node == PieceTrie::kNowhere) break;
        if (trie.string_at(node) >= 0) found.push_back(trie.string_at(node));
    }
    return found;
}

TEST(PieceTrie, FindsEveryPrefix) {
    const std::vector<std::string_view> strings = {"abc",          "a",   "b",       "ab", "\xE4\xBD\xA0",
                                                   "\xE4\xBD\xA1", "abd", {"\0x", 2}};
    const PieceTrie trie(strings);
    EXPECT_EQ(prefixes(trie, "abcd"), (std::vector<int32_t>{1, 3, 0}));
    EXPECT_EQ(prefixes(trie, "abd"), (std::vector<int32_t>{1, 3, 6}));
    EXPECT_EQ(prefixes(trie, "ba"), (std::vector<int32_t>{2}));
    EXPECT_EQ(prefixes(trie, "\xE4\xBD\xA1"), (std::vector<int32_t>{5}));
    EXPECT_EQ(prefixes(trie, {"\0x", 2}), (std::vector<int32_t>{7}));
    EXPECT_EQ(prefixes(trie, "x"), std::vector<int32_t>{});
    EXPECT_EQ(prefixes(PieceTrie({}), "x"), std::vector<int32_t>{});
}

TEST(PieceTrie, EqualsALookUpOfEveryPrefix) {
    std::vector<std::string> strings;
    uint32_t state = 1;
    std::set<std::string> seen;
    while (strings.size() < 500) {
        std::string s;
        do {
            state = state * 1664525 + 1013904223;
            s += static_cast<char>('a' + (state >> 24) % 3);
        } while ((state >> 20) % 6 != 0);
        if (seen.insert(s).second) strings.push_back(s);
    }
    const std::vector<std::string_view> views(strings.begin(), strings.end());
    const PieceTrie trie(views);
    for (const std::string& text : strings) {
        std::vector<int32_t> expected;
        for (size_t n = 1; n <= text.size(); ++n)
            for (size_t i = 0; i < strings.size(); ++i)
                if (strings[i] == text.substr(0, n)) expected.push_back(static_cast<int32_t>(i));
        EXPECT_EQ(prefixes(trie, text), expected) << text;
    }
}

}  // namespace
}  // namespace llm
