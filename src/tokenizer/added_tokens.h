#pragma once
// Added tokens: strings that are found in the text before everything else, each with an id of its own (control tokens
// of a chat, tool tags, runs of blanks).

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/tokenizer/flat_map.h"
#include "src/tokenizer/normalizer.h"
#include "src/tokenizer/trust.h"
#include "src/tokenizer/vocab.h"

namespace llm {

struct AddedToken {
    TokenId id = -1;
    std::string content;
    std::string decoded;       ///< what the decoder gets: the content, normalized if it is found so
    bool special = false;      ///< left out when decoding
    bool single_word = false;  ///< not inside a word
    bool lstrip = false;       ///< takes the white space before it
    bool rstrip = false;       ///< takes the white space after it
    bool normalized = true;    ///< is normalized itself and found in the normalized text, not in the text as given

    /// Nothing but white space or "▁": part of the vocabulary, not markup.
    bool is_blank() const;
};

/// A stretch of text, or an added token in it.
struct Section {
    Stretch place;
    TokenId id = -1;  ///< of an added token; -1: plain text
};

class AddedTokens {
  public:
    AddedTokens() = default;
    /// The longest content, in bytes: at every place of a text up to so many bytes are looked at.
    static constexpr size_t kMaxContentBytes = 1024;

    /// From tokenizer.json's "added_tokens". Ids are those of the file, also where they leave gaps. Throws corrupt_file
    /// for an id or a content that the vocabulary gives to another token, unsupported for a content that is too long or
    /// that the normalizer takes away.
    AddedTokens(const nlohmann::json& list, const Vocab& vocab, const Normalizer& normalizer);

    /// Cuts a text at the added tokens: those found in the text as given, or those found in normalized text. Leftmost
    /// first, then longest. Tokens that do not lie in what is trusted are plain text, but for blank ones.
    std::vector<Section> find(std::string_view text, bool normalized, const Trust& trust) const;

    const AddedToken* by_id(TokenId id) const;
    std::optional<TokenId> by_content(std::string_view content) const;
    TokenId id_end() const { return id_end_; }

  private:
    /// Strings by their bytes: node 0 is the root.
    struct Trie {
        FlatMap<uint32_t> children;  // key: node and byte
        std::vector<int32_t> token_at{-1};
        std::array<bool, 256> first{};  // bytes that a string begins with: most of a text is skipped by this
        void add(std::string_view text, int32_t token);
    };
    /// A token in a text.
    struct Match {
        const AddedToken* token = nullptr;  // null: none
        size_t end = 0;
    };
    Match longest(const Trie& trie, std::string_view text, size_t at, const Trust& trust) const;

    std::vector<AddedToken> tokens_;
    std::unordered_map<TokenId, size_t> by_id_;
    std::unordered_map<std::string, size_t> by_content_;
    Trie as_given_, normalized_;
    TokenId id_end_ = 0;
};

}  // namespace llm
