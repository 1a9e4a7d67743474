#pragma once
// Unigram: a piece is cut into tokens so that the sum of their scores (logarithms of probabilities) is largest. Found
// by going through the piece once and keeping, for every place, the best way to get there (Viterbi). Of two equal ways
// the one whose last token is longer wins, because it was found first. Source: Kudo 2018, arXiv:1804.10959; unknown
// characters and ties as in Hugging Face tokenizers.

#include <memory>
#include <vector>

#include "src/tokenizer/model.h"
#include "src/tokenizer/piece_trie.h"
#include "src/tokenizer/symbols.h"

namespace llm {

class Fields;

class Unigram : public TokenizerModel {
  public:
    /// The longest token, in bytes: at every place of a text up to so many bytes are looked at.
    static constexpr size_t kMaxTokenBytes = 512;

    struct Options {
        TokenId unknown = -1;        ///< for runs of characters without a token; -1: they are an error
        bool byte_fallback = false;  ///< such runs are spelled in byte tokens, where all their bytes have one
    };
    /// scores: by id.
    Unigram(Vocab vocab, std::vector<double> scores, Options options);

    std::unique_ptr<Encoder> encoder() const override;
    const Vocab& vocab() const override { return vocab_; }
    TokenId unknown() const override { return options_.unknown; }

  private:
    class PieceEncoder;

    Vocab vocab_;
    std::vector<double> scores_;
    double unknown_score_ = 0;  // of a character without a token: 10 less than the worst token
    Options options_;
    PieceTrie trie_;
    SymbolTable symbols_;
};

/// Of tokens that come twice the last counts (Hugging Face's trainer makes such vocabularies). Throws corrupt_file for
/// an unknown token that does not exist and for empty tokens, unsupported for tokens that are too long.
std::unique_ptr<const TokenizerModel> parse_unigram(const Fields& fields, TokenizerFile& file);

}  // namespace llm
