#pragma once
// Charsmap: SentencePiece's normalization table, which tokenizer.json carries in the normalizer "Precompiled". The
// table is a double-array trie whose leaves are places in a list of texts, each closed by a zero byte. How it is
// applied follows Hugging Face, not SentencePiece: by graphemes, and a rule for the beginning of a grapheme replaces
// all of it.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

class Charsmap {
  public:
    /// bytes: the trie's size in bytes (32 bits, little-endian), the trie, the texts. Throws corrupt_file if sizes do
    /// not fit or the texts are not UTF-8. Damage within the trie is harmless: it leads to no rule.
    explicit Charsmap(std::string_view bytes);

    /// text (valid UTF-8) with every rule applied.
    std::string apply(std::string_view text) const;

  private:
    /// What the shortest rule that text begins with says; nothing if there is none.
    std::optional<std::string_view> rule(std::string_view text) const;
    void append(std::string& out, std::string_view grapheme) const;
    /// How many characters from a place on stay as they are, as far as that is seen at once.
    size_t plain_run(std::string_view text, size_t at) const;

    std::vector<uint32_t> trie_;
    std::string texts_;
    std::array<bool, 128> plain_{};  // ASCII characters without a rule, but for CR, which may begin a longer grapheme
};

}  // namespace llm
