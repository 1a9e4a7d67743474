#include "src/tokenizer/unigram.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "ggmlx/core/error.h"
#include "src/tokenizer/fields.h"
#include "src/tokenizer/utf8.h"
#include "src/tokenizer/word_cache.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;

constexpr double kUnknownPenalty = 10;

PieceTrie trie_of(const Vocab& vocab) {
    std::vector<std::string_view> tokens;
    for (TokenId id = 0; id < vocab.id_end(); ++id) {
        const std::string_view token = vocab.token(id);
        tokens.push_back(vocab.find(token) == id ? token
                                                 : std::string_view());  // of two that are equal the last counts
    }
    return PieceTrie(tokens);
}

}  // namespace

Unigram::Unigram(Vocab vocab, std::vector<double> scores, Options options)
    : vocab_(std::move(vocab)),
      scores_(std::move(scores)),
      options_(options),
      trie_(trie_of(vocab_)),
      symbols_(vocab_) {
    if (!scores_.empty()) unknown_score_ = *std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty;
}

class Unigram::PieceEncoder : public TokenizerModel::Encoder {
  public:
    explicit PieceEncoder(const Unigram& model) : model_(model) {}

    void encode(std::string_view piece, std::vector<TokenId>& out) override {
        const bool cached = piece.size() <= WordCache::kMaxKeyBytes;
        if (cached && pieces_.find(piece, out)) return;
        const size_t begin = out.size();
        find_best(piece);
        collect(piece, out);
        if (cached) pieces_.insert(piece, std::span(out).subspan(begin));
    }

  private:
    /// The best way to a place: its last token and where that one begins.
    struct Step {
        double score = 0;
        TokenId id = -1;
        uint32_t begin = kNone;
    };
    static constexpr uint32_t kNone = ~uint32_t{0};

    void find_best(std::string_view piece) {
        best_.assign(piece.size() + 1, Step{});
        for (size_t at = 0; at < piece.size();) {
            const size_t size = code_point_at(piece, at).size;
            if (!try_tokens(piece, at, size)) {
                require(model_.options_.unknown >= 0 || model_.options_.byte_fallback, ErrorKind::InvalidArgument,
                        "the text has '{}', which the tokenizer has no token for, and it names no unknown token",
                        piece.substr(at, size));
                consider(at, at + size, model_.unknown_score_, model_.options_.unknown);
            }
            at += size;
        }
    }

    /// All tokens that begin at a place; true if one of them is the character there.
    bool try_tokens(std::string_view piece, size_t at, size_t character_size) {
        bool has_character = false;
        uint32_t node = PieceTrie::kRoot;
        for (size_t i = at; i < piece.size(); ++i) {
            node = model_.trie_.child(node, piece[i]);
            if (node == PieceTrie::kNowhere) break;
            const TokenId id = model_.trie_.string_at(node);
            if (id < 0) continue;
            consider(at, i + 1, model_.scores_[static_cast<size_t>(id)], id);
            has_character = has_character || i + 1 - at == character_size;
        }
        return has_character;
    }

    void consider(size_t begin, size_t end, double score, TokenId id) {
        Step& step = best_[end];
        const double total = score + best_[begin].score;
        if (step.begin == kNone || total > step.score) step = {total, id, static_cast<uint32_t>(begin)};
    }

    /// Writes the best way; neighbouring unknown tokens are one.
    void collect(std::string_view piece, std::vector<TokenId>& out) {
        ends_.clear();
        for (auto end = static_cast<uint32_t>(piece.size()); end > 0; end = best_[end].begin) ends_.push_back(end);
        for (size_t i = ends_.size(); i > 0;) {
            const Step& first = best_[ends_[--i]];
            if (first.id != model_.options_.unknown) {
                out.push_back(first.id);
                continue;
            }
            while (i > 0 && best_[ends_[i - 1]].id == first.id) --i;
            spell_unknown(piece.substr(first.begin, ends_[i] - first.begin), out);
        }
    }

    void spell_unknown(std::string_view run, std::vector<TokenId>& out) {
        if (const auto id = model_.vocab_.find(run)) return out.push_back(*id);  // "<unk>" as the text has it
        const size_t begin = out.size();
        bool spelled = model_.options_.byte_fallback;
        for (size_t i = 0; spelled && i < run.size(); ++i) {
            out.push_back(model_.symbols_.byte_id(run[i]));
            spelled = out.back() >= 0;
        }
        if (spelled) return;
        out.resize(begin);
        require(model_.options_.unknown >= 0, ErrorKind::InvalidArgument,
                "the text has '{}', which the tokenizer has no tokens for, and it names no unknown token", run);
        out.push_back(model_.options_.unknown);
    }

    const Unigram& model_;
    WordCache pieces_;
    std::vector<Step> best_;
    std::vector<uint32_t> ends_;  // of the tokens of the best way, the last one first
};

std::unique_ptr<TokenizerModel::Encoder> Unigram::encoder() const { return std::make_unique<PieceEncoder>(*this); }

std::unique_ptr<const TokenizerModel> parse_unigram(const Fields& fields, TokenizerFile& file) {
    fields.only({"type", "unk_id", "byte_fallback"});
    require(file.vocab.empty(), ErrorKind::CorruptFile, "tokenizer.json: {} has ids in its vocabulary, not scores",
            fields.where());
    Unigram::Options options;
    options.byte_fallback = fields.flag("byte_fallback", false);
    std::vector<Vocab::Entry> entries;
    for (const TokenizerFile::Scored& token : file.scored) {
        const auto id = static_cast<int64_t>(entries.size());
        require(token.text.size > 0, ErrorKind::CorruptFile, "tokenizer.json: token {} of {} is empty", id,
                fields.where());
        require(token.text.size <= Unigram::kMaxTokenBytes, ErrorKind::Unsupported,
                "tokenizer.json: token {} of {} has {} bytes; more than {} are not supported", id, fields.where(),
                token.text.size, Unigram::kMaxTokenBytes);
        entries.push_back({token.text.offset, token.text.size, id});
    }
    if (fields.find("unk_id")) {
        const int64_t id = fields.integer("unk_id");
        require(id >= 0 && id < std::ssize(entries), ErrorKind::CorruptFile,
                "tokenizer.json: unk_id of {} is {}, but there are {} tokens", fields.where(), id, entries.size());
        options.unknown = static_cast<TokenId>(id);
    }
    std::vector<double> scores;
    for (const TokenizerFile::Scored& token : file.scored) scores.push_back(token.score);
    Vocab vocab(std::move(file.vocab_arena), entries, Vocab::Repeated::LastCounts);
    return std::make_unique<Unigram>(std::move(vocab), std::move(scores), options);
}

}  // namespace llm
