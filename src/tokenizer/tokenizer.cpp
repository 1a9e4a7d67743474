#include "src/tokenizer/tokenizer.h"

#include <algorithm>

#include "ggmlx/core/error.h"
#include "src/tokenizer/impl.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

/// Encodes the text between two added tokens.
class PlainText {
  public:
    PlainText(const Tokenizer::Impl& impl, std::vector<TokenId>& out)
        : impl_(impl), encoder_(impl.model->encoder()), out_(out) {}

    void encode(std::string_view text, bool at_start) {
        Pieces pieces;
        pieces.text = text;
        pieces.at_start = at_start;
        if (!text.empty()) pieces.pieces.push_back({0, static_cast<uint32_t>(text.size())});
        if (impl_.pre_tokenizer) impl_.pre_tokenizer(pieces);
        for (const Range& r : pieces.pieces) encoder_->encode(pieces.piece(r), out_);
    }

  private:
    const Tokenizer::Impl& impl_;
    std::unique_ptr<TokenizerModel::Encoder> encoder_;
    std::vector<TokenId>& out_;
};

/// Text is cut at the added tokens found as given, what is left is normalized and cut at those found in normalized
/// text.
void encode_text(const Tokenizer::Impl& impl, std::string_view text, bool only_blank, std::vector<TokenId>& out) {
    PlainText plain(impl, out);
    bool at_start = true;
    for (const Section& outer : impl.added.find(text, false, only_blank)) {
        if (outer.id >= 0) {
            out.push_back(outer.id);
        } else {
            const std::string given(outer.text);
            const std::string normal = impl.normalizer ? impl.normalizer(given) : given;
            for (const Section& inner : impl.added.find(normal, true, only_blank)) {
                if (inner.id >= 0)
                    out.push_back(inner.id);
                else
                    plain.encode(inner.text, at_start);
                at_start = false;
            }
        }
        at_start = false;
    }
}

void push_token(const Tokenizer::Impl& impl, TokenId id, bool skip_special, Decoding& decoding) {
    if (!impl.has(id) || (skip_special && impl.is_special(id))) return;
    decoding.push(impl.decoder_input(id));
}

}  // namespace

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
    ggmlx::require(text.size() < kMaxTextBytes, ggmlx::ErrorKind::InvalidArgument,
                   "a text of {} bytes is too long to tokenize (2 GiB)", text.size());
    std::vector<TokenId> ids;
    if (options.add_special) ids = impl_->frame.before;
    if (is_valid_utf8(text))
        encode_text(*impl_, text, !options.parse_special, ids);
    else
        encode_text(*impl_, replace_invalid_utf8(text), !options.parse_special, ids);
    if (options.add_special) ids.insert(ids.end(), impl_->frame.after.begin(), impl_->frame.after.end());
    return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
    Decoding decoding(impl_->decoder);
    for (const TokenId id : ids) push_token(*impl_, id, skip_special, decoding);
    decoding.finish();
    return decoding.take();
}

int64_t Tokenizer::n_vocab() const { return std::max(impl_->model->vocab().id_end(), impl_->added.id_end()); }
bool Tokenizer::has_token(TokenId id) const { return impl_->has(id); }
bool Tokenizer::is_special(TokenId id) const { return impl_->is_special(id); }
std::optional<TokenId> Tokenizer::token_to_id(std::string_view token) const { return impl_->find(token); }
std::string Tokenizer::id_to_token(TokenId id) const { return std::string(impl_->token(id)); }

TokenStream::TokenStream(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(tokenizer),
      skip_special_(skip_special),
      decoding_(std::make_unique<Decoding>(tokenizer.impl().decoder)) {}
TokenStream::~TokenStream() = default;
TokenStream::TokenStream(TokenStream&&) noexcept = default;
TokenStream& TokenStream::operator=(TokenStream&&) noexcept = default;

std::string TokenStream::push(TokenId id) {
    push_token(tokenizer_.impl(), id, skip_special_, *decoding_);
    return decoding_->take();
}

std::string TokenStream::finish() {
    decoding_->finish();
    std::string rest = decoding_->take();
    decoding_ = std::make_unique<Decoding>(tokenizer_.impl().decoder);
    return rest;
}

}  // namespace llm
