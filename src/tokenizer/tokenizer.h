#pragma once
// Tokenizer: text <-> token ids by the rules in a Hugging Face tokenizer.json, which travels whole in the model file.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llm {

using TokenId = int32_t;

/// Immutable after load; encode and decode may be called from any thread.
class Tokenizer {
  public:
    /// Parses tokenizer.json. From tokenizer_config.json, if not empty, come add_bos_token and add_eos_token; they
    /// count only where tokenizer.json's post-processor adds no token itself. Throws corrupt_file for malformed input
    /// and unsupported, naming the construct, for rules this version cannot follow exactly.
    static Tokenizer from_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json = {});

    struct EncodeOptions {
        bool add_special = true;  ///< apply the post-processor (BOS, EOS)
        /// Added tokens written in the text become their ids. False: they are plain text, whether they are marked
        /// special or not (DeepSeek's <｜User｜> and Qwen's <tool_call> are not); only those of white space alone still
        /// count. The model itself then makes no special token of plain text either.
        bool parse_special = true;
    };
    /// Ids of a text, in time linear in its length (n log n where the model joins one long word). Invalid UTF-8 is
    /// replaced by U+FFFD first, as Hugging Face's tools do when text enters them. Throws invalid_argument for 2 GiB
    /// and more, unsupported when the tokenizer's own regular expression explodes.
    std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const;
    std::vector<TokenId> encode(std::string_view text) const { return encode(text, EncodeOptions{}); }

    /// A part of a text, with a rule of its own for added tokens.
    struct Segment {
        std::string_view text;
        bool parse_special = true;  ///< as in EncodeOptions
    };
    /// Ids of the segments' texts put together: normalized, cut into pieces and encoded as one text, so the borders
    /// leave no trace. Only which added tokens count differs: one counts if it lies whole in segments with
    /// parse_special (neighbours count as one). For prompts: what a chat template wrote is parsed, what a user or a
    /// tool wrote is not.
    std::vector<TokenId> encode_segments(std::span<const Segment> segments, bool add_special = true) const;
    /// As Hugging Face's decode: ill-formed UTF-8 becomes U+FFFD, one for each maximal subpart. Ids without a token
    /// give nothing. One difference, for byte tokens ("<0xE4>") that do not form UTF-8: characters among them are kept,
    /// where Hugging Face turns every byte of the run into U+FFFD; else no character could be streamed before the run
    /// ends.
    std::string decode(std::span<const TokenId> ids, bool skip_special = true) const;

    /// One past the largest id with a token, added tokens included; the model's embedding may have more rows, not less.
    int64_t n_vocab() const;
    bool has_token(TokenId id) const;   ///< false for gaps and for ids past the end
    bool is_special(TokenId id) const;  ///< an added token marked special
    std::optional<TokenId> token_to_id(std::string_view token) const;
    std::string id_to_token(TokenId id) const;  ///< the vocabulary's own spelling ("▁the"); empty if there is none

    struct Impl;
    const Impl& impl() const { return *impl_; }

  private:
    explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<const Impl> impl_;
};

class Decoding;

/// Turns ids into text piece by piece: the pieces put together are decode() of all ids, no piece ends inside a UTF-8
/// character, and a piece comes as soon as its text is certain. Owned by one thread.
class TokenStream {
  public:
    explicit TokenStream(const Tokenizer& tokenizer, bool skip_special = true);
    ~TokenStream();
    TokenStream(TokenStream&&) noexcept;
    TokenStream& operator=(TokenStream&&) noexcept;

    /// The text that became certain with this id; often empty in the middle of a character.
    std::string push(TokenId id);
    /// What is still held back, when generation ends: U+FFFD for a character that was left incomplete.
    std::string finish();

  private:
    Tokenizer tokenizer_;
    bool skip_special_;
    std::unique_ptr<Decoding> decoding_;
};

}  // namespace llm
