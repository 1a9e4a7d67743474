#pragma once
// BPE: a piece is spelled in single characters, which are then joined by the merge list. Both kinds are this one model:
// byte-level BPE (the pre-tokenizer ByteLevel has turned bytes into characters) and SentencePiece's (whole characters,
// unknown ones as bytes "<0xE4>", often the whole text as one piece).
// Source: Sennrich et al. 2016, arXiv:1508.07909; behaviour of unknown characters as in Hugging Face tokenizers.

#include <memory>

#include "src/tokenizer/joints.h"
#include "src/tokenizer/merge.h"
#include "src/tokenizer/model.h"
#include "src/tokenizer/symbols.h"

namespace llm {

class Fields;

class Bpe : public TokenizerModel {
  public:
    struct Options {
        TokenId unknown = -1;        ///< for characters without a token; -1: they are dropped
        bool fuse_unknown = false;   ///< neighbouring unknown characters give one id
        bool byte_fallback = false;  ///< unknown characters are spelled in byte tokens, where all their bytes have one
        bool ignore_merges = false;  ///< a piece that is a token is that token, whatever the merges say
    };
    Bpe(Vocab vocab, MergeTable merges, size_t n_ranks, Options options);

    std::unique_ptr<Encoder> encoder() const override;
    const Vocab& vocab() const override { return vocab_; }
    TokenId unknown() const override { return options_.unknown; }

  private:
    class PieceEncoder;

    std::vector<TokenId> opaque_symbols() const;

    Vocab vocab_;
    MergeTable merges_;
    size_t n_ranks_;
    Options options_;
    SymbolTable symbols_;
    Joints joints_;
};

/// Throws corrupt_file for merges of tokens that do not exist, unsupported for dropout, prefixes and suffixes.
std::unique_ptr<const TokenizerModel> parse_bpe(const Fields& fields, TokenizerFile& file);

}  // namespace llm
