#pragma once
// SymbolTable: the tokens that are one character or one byte, with which BPE begins.

#include <array>

#include "src/tokenizer/flat_map.h"
#include "src/tokenizer/vocab.h"

namespace llm {

class SymbolTable {
  public:
    explicit SymbolTable(const Vocab& vocab);

    /// The token that is this character; -1 if there is none.
    TokenId id(char32_t c) const {
        if (c < low_.size()) return low_[c];
        const TokenId* found = others_.find(c);
        return found ? *found : -1;
    }
    /// The token "<0x00>" … "<0xFF>" that stands for a byte; -1 if there is none.
    TokenId byte_id(char byte) const { return bytes_[static_cast<unsigned char>(byte)]; }

  private:
    std::array<TokenId, 0x400> low_{};  // characters below U+0400, all of the byte-level alphabet among them
    FlatMap<TokenId> others_;
    std::array<TokenId, 256> bytes_{};
};

}  // namespace llm
