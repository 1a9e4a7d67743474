#pragma once
// Vocab: the model's own tokens, spelling <-> id. Ids may have gaps.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/tokenizer/tokenizer.h"

namespace llm {

/// Ids above this are taken for damage: no vocabulary is near it, and tables are sized by the largest id.
inline constexpr int64_t kMaxTokenId = (int64_t{1} << 24) - 1;

class Vocab {
  public:
    struct Entry {
        size_t offset = 0;  ///< of the spelling in the arena
        size_t size = 0;
        int64_t id = 0;
    };
    Vocab() = default;
    enum class Repeated { Error, LastCounts };  ///< what a spelling is that comes twice
    /// arena holds the spellings. Throws corrupt_file for an id outside [0, kMaxTokenId] and for an id that comes
    /// twice.
    Vocab(std::string arena, const std::vector<Entry>& entries, Repeated repeated = Repeated::Error);

    std::optional<TokenId> find(std::string_view token) const;
    /// Spelling of an id; empty if it has none.
    std::string_view token(TokenId id) const;
    bool has(TokenId id) const;
    TokenId id_end() const { return static_cast<TokenId>(tokens_.size()); }  ///< one past the largest id

  private:
    static constexpr uint32_t kNone = ~uint32_t{0};
    struct Span {
        uint32_t offset = kNone, size = 0;
    };
    struct Slot {
        uint32_t hash = 0;  // decides most comparisons without a look at the spelling
        TokenId id = -1;    // -1: free
    };
    std::string_view spelling(const Span& span) const {
        return std::string_view(arena_).substr(span.offset, span.size);
    }
    size_t find_slot(std::string_view token, uint32_t hash) const;

    std::string arena_;
    std::vector<Span> tokens_;    // by id
    std::vector<Slot> slots_{1};  // hash table; its size is a power of two
};

}  // namespace llm
