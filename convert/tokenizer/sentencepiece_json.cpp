#include "convert/tokenizer/sentencepiece_json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "convert/tokenizer/template_json.h"
#include "ggmlx/core/base64.h"
#include "ggmlx/core/error.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;
using nlohmann::ordered_json;
using Type = SentencePieces::Type;

constexpr const char* kMark = "\u2581";                    // stands for a space
constexpr size_t kMaxJoinedBytes = 1024;                   // of a piece that is cut in two at every place
constexpr size_t kMaxMergesTextBytes = size_t{256} << 20;  // of all merges together
using PieceIds = std::unordered_map<std::string_view, uint32_t>;

/// Two pieces that make a third.
struct PieceMerge {
    uint32_t left = 0, right = 0, joined = 0;
    uint16_t left_length = 0, right_length = 0;  // in characters
};

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

PieceIds check_pieces(const SentencePieces& model) {
    PieceIds ids;
    ids.reserve(model.pieces.size());
    for (size_t id = 0; id < model.pieces.size(); ++id) {
        const SentencePieces::Piece& p = model.pieces[id];
        require(!p.text.empty(), ErrorKind::CorruptFile, "tokenizer: piece {} is empty", id);
        require(std::isfinite(p.score), ErrorKind::CorruptFile, "tokenizer: the score of piece {} ('{}') is {}", id,
                p.text, p.score);
        const auto [other, is_new] = ids.emplace(p.text, static_cast<uint32_t>(id));
        require(is_new, ErrorKind::CorruptFile, "tokenizer: pieces {} and {} are both '{}'", other->second, id, p.text);
    }
    const std::pair<const char*, int64_t> named[] = {
        {"unknown", model.unk_id}, {"BOS", model.bos_id}, {"EOS", model.eos_id}};
    for (const auto& [name, id] : named)
        require(id >= -1 && id < std::ssize(model.pieces), ErrorKind::CorruptFile,
                "tokenizer: the {} token is {}, but there are {} pieces", name, id, model.pieces.size());
    return ids;
}

/// What plain text may become.
bool is_text(const SentencePieces::Piece& p) {
    return p.type == Type::Normal || p.type == Type::UserDefined || p.type == Type::Unused;
}

/// Appends every way to cut a piece in two, by the ids of the two.
void append_cuts(const SentencePieces& model, const PieceIds& ids, uint32_t id, std::vector<PieceMerge>& merges) {
    const std::string_view text = model.pieces[id].text;
    require(text.size() <= kMaxJoinedBytes, ErrorKind::Unsupported,
            "tokenizer: piece {} has {} bytes; pieces of more than {} are not supported", id, text.size(),
            kMaxJoinedBytes);
    const auto length = static_cast<uint16_t>(std::count_if(text.begin(), text.end(), starts_character));
    const size_t first = merges.size();
    uint16_t left_length = 1;
    for (size_t at = 1; at < text.size(); ++at) {
        if (!starts_character(text[at])) continue;
        const auto left = ids.find(text.substr(0, at)), right = ids.find(text.substr(at));
        if (left != ids.end() && right != ids.end() && is_text(model.pieces[left->second]) &&
            is_text(model.pieces[right->second]))
            merges.push_back(
                {left->second, right->second, id, left_length, static_cast<uint16_t>(length - left_length)});
        ++left_length;
    }
    std::sort(merges.begin() + static_cast<ptrdiff_t>(first), merges.end(),
              [](const PieceMerge& a, const PieceMerge& b) {
                  return std::pair(a.left, a.right) < std::pair(b.left, b.right);
              });
}

std::vector<PieceMerge> merges_by_score(const SentencePieces& model, const PieceIds& ids) {
    std::vector<PieceMerge> merges;
    size_t text_bytes = 0;
    for (uint32_t id = 0; id < model.pieces.size(); ++id) {
        if (!is_text(model.pieces[id])) continue;
        const size_t before = merges.size();
        append_cuts(model, ids, id, merges);
        text_bytes += (merges.size() - before) * model.pieces[id].text.size();
        require(text_bytes <= kMaxMergesTextBytes, ErrorKind::CorruptFile,
                "tokenizer: the pieces can be cut in too many ways");
    }
    const auto before = [&](const PieceMerge& a, const PieceMerge& b) {
        const float score_a = model.pieces[a.joined].score, score_b = model.pieces[b.joined].score;
        if (score_a != score_b) return score_a > score_b;
        return std::pair(a.left_length, a.right_length) > std::pair(b.left_length, b.right_length);
    };
    std::stable_sort(merges.begin(), merges.end(), before);
    return merges;
}

/// The text of a JSON value. Throws corrupt_file for text that is not UTF-8.
std::string json_text(const ordered_json& value) {
    try {
        return value.dump();
    } catch (const ordered_json::type_error&) {
        fail(ErrorKind::CorruptFile, "tokenizer: a piece is not UTF-8: {}",
             value.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    }
}

/// Vocabulary and merges are written directly: as a JSON tree they would take many times their size.
std::string bpe_text(const SentencePieces& model, const PieceIds& ids) {
    std::vector<std::string> quoted;
    for (const SentencePieces::Piece& p : model.pieces) quoted.push_back(json_text(p.text));
    std::string out = R"({"type":"BPE","dropout":null,"unk_token":)";
    out += model.unk_id < 0 ? "null" : quoted[static_cast<size_t>(model.unk_id)];
    out += R"(,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":true,"byte_fallback":)";
    out += model.byte_fallback ? "true" : "false";
    out += R"(,"ignore_merges":false,"vocab":{)";
    for (size_t id = 0; id < quoted.size(); ++id)
        fmt::format_to(std::back_inserter(out), "{}{}:{}", id == 0 ? "" : ",", quoted[id], id);
    out += R"(},"merges":[)";
    const char* comma = "";
    for (const PieceMerge& m : merges_by_score(model, ids)) {
        fmt::format_to(std::back_inserter(out), "{}[{},{}]", comma, quoted[m.left], quoted[m.right]);
        comma = ",";
    }
    return out += "]}";
}

std::string unigram_text(const SentencePieces& model) {
    std::string out = R"({"type":"Unigram","unk_id":)";
    out += model.unk_id < 0 ? "null" : std::to_string(model.unk_id);
    out += R"(,"vocab":[)";
    const char* comma = "";
    for (const SentencePieces::Piece& p : model.pieces) {
        out += comma + json_text({p.text, static_cast<double>(p.score)});
        comma = ",";
    }
    out += R"(],"byte_fallback":)";
    return out += model.byte_fallback ? "true}" : "false}";
}

ordered_json replace_construct(ordered_json pattern, const std::string& content) {
    return {{"type", "Replace"}, {"pattern", std::move(pattern)}, {"content", content}};
}

ordered_json sequence_or_null(const char* key, ordered_json steps) {
    if (steps.empty()) return nullptr;
    return {{"type", "Sequence"}, {key, std::move(steps)}};
}

/// True for the models that transformers' general converter takes: words are cut apart before the model sees them.
bool cuts_words(const SentencePieces& m) { return m.kind == SentencePieces::Kind::Unigram && !m.byte_fallback; }
bool has_metaspace(const SentencePieces& m) { return cuts_words(m) || !m.legacy; }

ordered_json normalizer(const SentencePieces& m) {
    ordered_json steps = ordered_json::array();
    if (!m.precompiled_charsmap.empty())
        steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", ggmlx::to_base64(m.precompiled_charsmap)}});
    if (m.remove_extra_whitespaces) {
        if (has_metaspace(m))
            steps.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
        else
            steps.push_back(replace_construct({{"Regex", "\\A +| +\\z"}}, ""));
        steps.push_back(replace_construct({{"Regex", " {2,}"}}, has_metaspace(m) ? kMark : " "));
    }
    if (!has_metaspace(m)) {
        if (m.add_dummy_prefix) steps.push_back({{"type", "Prepend"}, {"prepend", kMark}});
        steps.push_back(replace_construct({{"String", " "}}, kMark));
    }
    return sequence_or_null("normalizers", std::move(steps));
}

ordered_json metaspace(const SentencePieces& m) {
    const char* scheme = !m.add_dummy_prefix ? "never" : m.legacy ? "always" : "first";
    return {{"type", "Metaspace"}, {"replacement", kMark}, {"prepend_scheme", scheme}, {"split", cuts_words(m)}};
}

ordered_json decoder(const SentencePieces& m) {
    if (cuts_words(m)) return metaspace(m);
    ordered_json steps = {replace_construct({{"String", kMark}}, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
    if (m.add_dummy_prefix) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    return sequence_or_null("decoders", std::move(steps));
}

ordered_json post_processor(const SentencePieces& m) {
    const auto token = [&](bool wanted, int64_t id) -> std::optional<FrameToken> {
        if (!wanted || id < 0) return std::nullopt;
        return FrameToken{id, m.pieces[static_cast<size_t>(id)].text};
    };
    return template_json(token(m.add_bos, m.bos_id), token(m.add_eos, m.eos_id));
}

std::vector<AddedTokenSpec> added_tokens(const SentencePieces& m) {
    std::map<int64_t, AddedTokenSpec> tokens;
    for (size_t i = 0; i < m.pieces.size(); ++i) {
        const SentencePieces::Piece& p = m.pieces[i];
        const bool special = p.type == Type::Unknown || p.type == Type::Control;
        const auto id = static_cast<int64_t>(i);
        if (special || p.type == Type::UserDefined) tokens[id] = {id, p.text, special};
    }
    for (const AddedTokenSpec& t : m.added) tokens[t.id] = t;
    std::vector<AddedTokenSpec> list;
    for (auto& [id, t] : tokens) list.push_back(std::move(t));
    return list;
}

}  // namespace

std::string tokenizer_json(const SentencePieces& model) {
    const PieceIds ids = check_pieces(model);
    std::string out = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":)";
    out += json_text(added_tokens_json(added_tokens(model)));
    out += R"(,"normalizer":)" + json_text(normalizer(model));
    out += R"(,"pre_tokenizer":)" + (has_metaspace(model) ? json_text(metaspace(model)) : "null");
    out += R"(,"post_processor":)" + json_text(post_processor(model));
    out += R"(,"decoder":)" + json_text(decoder(model));
    out += R"(,"model":)";
    out += model.kind == SentencePieces::Kind::Bpe ? bpe_text(model, ids) : unigram_text(model);
    return out += "}\n";
}

}  // namespace convert
