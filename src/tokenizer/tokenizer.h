#pragma once
// Tokenizer: text <-> token ids by the rules in a Hugging Face tokenizer.json, which travels whole in the model file.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

using TokenId = int32_t;

/// Immutable after load; encode and decode may be called from any thread.
class Tokenizer {
  public:
    /// Parses tokenizer.json (and, if not empty, tokenizer_config.json for add_bos_token and chat template names).
    /// Throws corrupt_file for malformed input and unsupported, naming the construct, for rules this version cannot
    /// follow exactly.
    static Tokenizer from_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json = {});

    struct EncodeOptions {
        bool add_special = true;    ///< apply the post-processor (BOS, EOS)
        bool parse_special = true;  ///< special tokens written in the text become their ids; false: they are plain text
    };
    /// Invalid UTF-8 is replaced by U+FFFD first, as Hugging Face's tools do when text enters them.
    std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const;
    std::vector<TokenId> encode(std::string_view text) const { return encode(text, EncodeOptions{}); }
    /// As Hugging Face's decode: incomplete UTF-8 becomes U+FFFD. Ids without a token give nothing.
    std::string decode(std::span<const TokenId> ids, bool skip_special = true) const;

    /// Ids with a token, added tokens included; may be smaller than the model's embedding.
    int64_t n_vocab() const;
    bool has_token(TokenId id) const;  ///< false for gaps and for ids past the end
    bool is_special(TokenId id) const;
    std::optional<TokenId> token_to_id(std::string_view token) const;
    std::string id_to_token(TokenId id) const;  ///< the vocabulary's own spelling ("▁the"); empty if there is none

    struct Impl;
    explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
    const Impl& impl() const { return *impl_; }

  private:
    std::shared_ptr<const Impl> impl_;
};

/// Turns ids into text piece by piece: the pieces put together are decode() of all ids, and no piece ends inside a
/// UTF-8 character.
class TokenStream {
  public:
    explicit TokenStream(const Tokenizer& tokenizer, bool skip_special = true)
        : tokenizer_(&tokenizer), skip_special_(skip_special) {}
    /// The text that became certain with this id; often empty in the middle of a character.
    std::string push(TokenId id);
    /// What is still held back, when generation ends.
    std::string finish();

  private:
    const Tokenizer* tokenizer_;
    bool skip_special_;
    std::vector<TokenId> pending_;  ///< ids whose text is not out yet, after one id of context
    std::string emitted_context_;   ///< text of the context id, already out
};

}  // namespace llm
