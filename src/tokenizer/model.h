#pragma once
// TokenizerModel: the stage that turns a piece of text into ids (BPE, unigram …). A model is immutable; what one
// encode() call remembers lives in an Encoder of its own.

#include <memory>
#include <string_view>
#include <vector>

#include "src/tokenizer/tokenizer_file.h"
#include "src/tokenizer/vocab.h"

namespace llm {

class TokenizerModel {
  public:
    /// Encodes one piece after the other. Owned by one thread.
    class Encoder {
      public:
        virtual ~Encoder() = default;
        /// Appends the ids of a piece (valid UTF-8, not empty).
        virtual void encode(std::string_view piece, std::vector<TokenId>& out) = 0;
    };

    virtual ~TokenizerModel() = default;
    virtual std::unique_ptr<Encoder> encoder() const = 0;
    virtual const Vocab& vocab() const = 0;
    /// The token for what the vocabulary cannot spell; -1: there is none.
    virtual TokenId unknown() const = 0;
};

/// From tokenizer.json's "model"; takes vocabulary and merges out of the file. Throws unsupported for a type that is
/// neither BPE nor Unigram.
std::unique_ptr<const TokenizerModel> parse_model(TokenizerFile& file);

}  // namespace llm
