#pragma once
// WordCache: a bounded map from short byte strings to ids, for words that come again and again.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/tokenizer/tokenizer.h"

namespace llm {

class WordCache {
  public:
    static constexpr size_t kMaxKeyBytes = 256;

    WordCache() { clear(); }
    /// Appends the ids of a word and returns true if it is known.
    bool find(std::string_view word, std::vector<TokenId>& out) const;
    /// Remembers a new word of up to kMaxKeyBytes bytes. When the cache is full it forgets everything first.
    void insert(std::string_view word, std::span<const TokenId> ids);

  private:
    static constexpr size_t kMinSlots = size_t{1} << 8, kMaxSlots = size_t{1} << 17;  // at most half of them are used
    struct Slot {
        uint32_t key = 0, ids = 0;  // offsets
        uint16_t key_size = 0, n_ids = 0;
    };
    size_t find_slot(std::string_view word) const;
    void grow();
    void clear();

    std::vector<Slot> slots_;
    std::string keys_;
    std::vector<TokenId> ids_;
    size_t size_ = 0;
};

}  // namespace llm
