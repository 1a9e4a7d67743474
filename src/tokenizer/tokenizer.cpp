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
    /// guarded: the model's own vocabulary has special tokens, too ("</s>"); plain text must not become one.
    PlainText(const Tokenizer::Impl& impl, bool guarded, std::vector<TokenId>& out)
        : impl_(impl), encoder_(impl.model->encoder()), guarded_(guarded), out_(out) {}

    void encode(std::string_view text, bool at_start) {
        Pieces pieces;
        pieces.text = text;
        pieces.at_start = at_start;
        if (!text.empty()) pieces.pieces.push_back({0, static_cast<uint32_t>(text.size())});
        if (impl_.pre_tokenizer) impl_.pre_tokenizer(pieces);
        for (const Range& r : pieces.pieces) encode_piece(pieces.piece(r));
    }

  private:
    void encode_piece(std::string_view piece) {
        const size_t begin = out_.size();
        encoder_->encode(piece, out_);
        if (!guarded_ || std::none_of(out_.begin() + static_cast<ptrdiff_t>(begin), out_.end(),
                                      [this](TokenId id) { return is_control(id); }))
            return;
        const std::vector<TokenId> ids(out_.begin() + static_cast<ptrdiff_t>(begin), out_.end());
        out_.resize(begin);
        for (const TokenId id : ids) {
            if (is_control(id))
                encode_in_two(id);
            else
                out_.push_back(id);
        }
    }

    bool is_control(TokenId id) const {
        const AddedToken* t = impl_.added.by_id(id);
        return t && t->special && id != impl_.model->unknown() && !t->is_blank();
    }

    /// Spells a token otherwise: its first character by itself.
    void encode_in_two(TokenId id) {
        const std::string spelling(impl_.model->vocab().token(id));
        const size_t first = spelling.empty() ? 0 : code_point_at(spelling, 0).size;
        if (first == spelling.size()) return out_.push_back(id);
        encode_piece(std::string_view(spelling).substr(0, first));
        encode_piece(std::string_view(spelling).substr(first));
    }

    const Tokenizer::Impl& impl_;
    std::unique_ptr<TokenizerModel::Encoder> encoder_;
    bool guarded_;
    std::vector<TokenId>& out_;
};

/// Text is cut at the added tokens found as given, what is left is normalized and cut at those found in normalized
/// text.
void encode_text(const Tokenizer::Impl& impl, std::string_view text, const Trust& trust, std::vector<TokenId>& out) {
    PlainText plain(impl, !trust.covers(0, text.size()), out);
    bool at_start = true;
    for (const Section& outer : impl.added.find(text, false, trust)) {
        const auto [begin, end] = outer.place;
        if (outer.id >= 0) {
            out.push_back(outer.id);
        } else {
            NormalText normal{std::string(text.substr(begin, end - begin)), trust.part(begin, end)};
            if (impl.normalizer) impl.normalizer(normal);
            ggmlx::require(normal.text.size() < kMaxTextBytes, ggmlx::ErrorKind::InvalidArgument,
                           "a text is too long to tokenize (2 GiB)");
            for (const Section& inner : impl.added.find(normal.text, true, normal.trust)) {
                if (inner.id >= 0)
                    out.push_back(inner.id);
                else
                    plain.encode(
                        std::string_view(normal.text).substr(inner.place.begin, inner.place.end - inner.place.begin),
                        at_start);
                at_start = false;
            }
        }
        at_start = false;
    }
}

/// Segments as one text that is valid UTF-8, and the trust in its parts.
NormalText joined(std::span<const Tokenizer::Segment> segments) {
    std::string text;
    std::vector<Stretch> trusted;
    for (const Tokenizer::Segment& s : segments) {
        const size_t begin = text.size();
        text += is_valid_utf8(s.text) ? std::string(s.text) : replace_invalid_utf8(s.text);
        if (!s.parse_special || begin == text.size()) continue;
        if (trusted.empty() || trusted.back().end != begin)
            trusted.push_back({begin, text.size()});
        else
            trusted.back().end = text.size();
    }
    const bool all = trusted.size() == 1 && trusted[0].begin == 0 && trusted[0].end == text.size();
    return {std::move(text), all ? Trust::all() : Trust::only(std::move(trusted))};
}

void push_token(const Tokenizer::Impl& impl, TokenId id, bool skip_special, Decoding& decoding) {
    if (!impl.has(id) || (skip_special && impl.is_special(id))) return;
    decoding.push(impl.decoder_input(id));
}

}  // namespace

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
    const Segment segment{text, options.parse_special};
    return encode_segments({&segment, 1}, options.add_special);
}

std::vector<TokenId> Tokenizer::encode_segments(std::span<const Segment> segments, bool add_special) const {
    size_t size = 0;
    for (const Segment& s : segments) size += s.text.size();
    ggmlx::require(size < kMaxTextBytes, ggmlx::ErrorKind::InvalidArgument,
                   "a text of {} bytes is too long to tokenize (2 GiB)", size);
    std::vector<TokenId> ids;
    if (add_special) ids = impl_->frame.before;
    const NormalText whole = joined(segments);
    encode_text(*impl_, whole.text, whole.trust, ids);
    if (add_special) ids.insert(ids.end(), impl_->frame.after.begin(), impl_->frame.after.end());
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
