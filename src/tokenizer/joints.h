#pragma once
// Joints: the places in a word that some merge may cross. Between two symbols that no merge can bring together a word
// is cut without changing a token, so that a long one becomes short ones, which fit the processor's caches and the word
// cache.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "src/tokenizer/merge.h"
#include "src/tokenizer/vocab.h"

namespace llm {

class Joints {
  public:
    /// character_id: the symbol of a character, -1 if it has none. opaque: symbols that are not spelled in characters
    /// (byte tokens, the unknown token); if a merge joins such a one, may_cross() is always true.
    Joints(const Vocab& vocab, const MergeTable& merges, const std::function<TokenId(char32_t)>& character_id,
           std::span<const TokenId> opaque);

    /// True if a merge may join a token that ends with symbols[i - 1] to one that begins with symbols[i]; 0 < i < size.
    /// True in vain at times, but never false in vain.
    bool may_cross(std::span<const TokenId> symbols, size_t i) const;

  private:
    bool everywhere_ = false;
    /// For every merge: the last one or two symbols of its left token and the first one or two of its right one, as one
    /// bit at their hash. What falls on another's bit costs a cut, not correctness; a table with the symbols themselves
    /// would not stay in the cache.
    std::vector<uint64_t> bits_;
};

}  // namespace llm
