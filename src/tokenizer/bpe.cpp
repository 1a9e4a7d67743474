#include "src/tokenizer/bpe.h"

#include <optional>
#include <span>
#include <utility>

#include "ggmlx/core/error.h"
#include "src/tokenizer/fields.h"
#include "src/tokenizer/utf8.h"
#include "src/tokenizer/word_cache.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

constexpr size_t kMaxShort = 48;  // symbols up to which looking at all pairs beats the queue

}  // namespace

Bpe::Bpe(Vocab vocab, MergeTable merges, size_t n_ranks, Options options)
    : vocab_(std::move(vocab)),
      merges_(std::move(merges)),
      n_ranks_(n_ranks),
      options_(options),
      symbols_(vocab_),
      joints_(
          vocab_, merges_, [this](char32_t c) { return symbols_.id(c); }, opaque_symbols()) {}

/// Symbols that are not spelled in characters.
std::vector<TokenId> Bpe::opaque_symbols() const {
    std::vector<TokenId> ids = {options_.unknown};
    for (int byte = 0; byte < 256; ++byte) ids.push_back(symbols_.byte_id(static_cast<char>(byte)));
    return ids;
}

class Bpe::PieceEncoder : public TokenizerModel::Encoder {
  public:
    explicit PieceEncoder(const Bpe& bpe) : bpe_(bpe) {}

    void encode(std::string_view piece, std::vector<TokenId>& out) override {
        if (bpe_.options_.ignore_merges) {
            if (const auto id = bpe_.vocab_.find(piece)) return out.push_back(*id);
        }
        const bool cached = piece.size() <= WordCache::kMaxKeyBytes;
        if (cached && pieces_.find(piece, out)) return;
        symbols_.clear();
        spell(piece);
        const size_t begin = out.size();
        if (cached)
            merge_run(symbols_, out);
        else
            merge_runs(out);
        if (cached) pieces_.insert(piece, std::span(out).subspan(begin));
    }

  private:
    /// Writes the piece in single characters.
    void spell(std::string_view piece) {
        bool pending = false;  // an unknown symbol that has to be written
        for (size_t at = 0; at < piece.size();) {
            const CodePoint c = code_point_at(piece, at);
            const std::string_view bytes = piece.substr(at, c.size);
            at += c.size;
            const TokenId id = bpe_.symbols_.id(c.value);
            if (id >= 0) {
                if (std::exchange(pending, false)) symbols_.push_back(bpe_.options_.unknown);
                symbols_.push_back(id);
            } else if (!spell_bytes(bytes) && bpe_.options_.unknown >= 0) {
                if (pending && !bpe_.options_.fuse_unknown) symbols_.push_back(bpe_.options_.unknown);
                pending = true;
            }
        }
        if (pending) symbols_.push_back(bpe_.options_.unknown);
    }

    bool spell_bytes(std::string_view bytes) {
        if (!bpe_.options_.byte_fallback) return false;
        const size_t begin = symbols_.size();
        for (const char byte : bytes) {
            symbols_.push_back(bpe_.symbols_.byte_id(byte));
            if (symbols_.back() >= 0) continue;
            symbols_.resize(begin);
            return false;
        }
        return true;
    }

    /// A long piece: cut where no merge crosses, and each run by itself.
    void merge_runs(std::vector<TokenId>& out) {
        for (size_t i = 0; i < symbols_.size();) {
            const size_t first = i++;
            while (i < symbols_.size() && bpe_.joints_.may_cross(symbols_, i)) ++i;
            const std::span<const TokenId> run = std::span(symbols_).subspan(first, i - first);
            const std::string_view key(reinterpret_cast<const char*>(run.data()), run.size_bytes());
            const bool cached = key.size() <= WordCache::kMaxKeyBytes;
            if (run.size() == 1) {
                out.push_back(run[0]);
            } else if (!cached || !runs_.find(key, out)) {
                const size_t begin = out.size();
                run_.assign(run.begin(), run.end());
                merge_run(run_, out);
                if (cached) runs_.insert(key, std::span(out).subspan(begin));
            }
        }
    }

    void merge_run(std::vector<TokenId>& symbols, std::vector<TokenId>& out) {
        if (symbols.size() <= kMaxShort) {
            merge_short(bpe_.merges_, symbols);
        } else {
            if (!queue_) queue_.emplace(bpe_.n_ranks_);
            merge_long(bpe_.merges_, *queue_, symbols);
        }
        out.insert(out.end(), symbols.begin(), symbols.end());
    }

    const Bpe& bpe_;
    WordCache pieces_, runs_;  // by text, and by symbols
    std::optional<MergeQueue> queue_;
    std::vector<TokenId> symbols_, run_;
};

std::unique_ptr<TokenizerModel::Encoder> Bpe::encoder() const { return std::make_unique<PieceEncoder>(*this); }

namespace {

MergeTable build_merges(const TokenizerFile& file, const Vocab& vocab) {
    const auto id_of = [&](std::string_view token, size_t rank) {
        const auto id = vocab.find(token);
        require(id.has_value(), ErrorKind::CorruptFile,
                "tokenizer.json: merge {} needs '{}', which is not in the vocabulary", rank, token);
        return *id;
    };
    MergeTable table(file.merges.size());
    std::string joined;
    for (size_t rank = 0; rank < file.merges.size(); ++rank) {
        const std::string_view left = file.text(file.merges[rank].left), right = file.text(file.merges[rank].right);
        joined.assign(left).append(right);
        const auto a = static_cast<uint32_t>(id_of(left, rank)), b = static_cast<uint32_t>(id_of(right, rank));
        table.set(pair_key(a, b), {static_cast<uint32_t>(rank), id_of(joined, rank)});
    }
    return table;
}

Bpe::Options parse_options(const Fields& fields, const Vocab& vocab) {
    Bpe::Options options;
    options.fuse_unknown = fields.flag("fuse_unk", false);
    options.byte_fallback = fields.flag("byte_fallback", false);
    options.ignore_merges = fields.flag("ignore_merges", false);
    const std::string unknown = fields.text("unk_token", "");
    if (fields.find("unk_token")) {
        const auto id = vocab.find(unknown);
        require(id.has_value(), ErrorKind::CorruptFile, "tokenizer.json: unk_token '{}' is not in the vocabulary",
                unknown);
        options.unknown = *id;
    }
    return options;
}

}  // namespace

std::unique_ptr<const TokenizerModel> parse_bpe(const Fields& fields, TokenizerFile& file) {
    fields.only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                 "byte_fallback", "ignore_merges"});
    require(!file.has_scores, ErrorKind::CorruptFile, "tokenizer.json: {} has a list for a vocabulary", fields.where());
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
        require(fields.text(key, "").empty(), ErrorKind::Unsupported, "tokenizer.json: {} of {} is not supported", key,
                fields.where());
    const nlohmann::json* dropout = fields.find("dropout");
    require(!dropout || (dropout->is_number() && *dropout == 0), ErrorKind::Unsupported,
            "tokenizer.json: dropout of {} is not supported: ids would be random", fields.where());

    Vocab vocab(std::move(file.vocab_arena), file.vocab);
    MergeTable merges = build_merges(file, vocab);
    const Bpe::Options options = parse_options(fields, vocab);
    return std::make_unique<Bpe>(std::move(vocab), std::move(merges), file.merges.size(), options);
}

}  // namespace llm
