#include "src/tokenizer/added_tokens.h"

#include <algorithm>

#include "ggmlx/core/error.h"
#include "src/tokenizer/fields.h"
#include "src/tokenizer/unicode.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using nlohmann::json;

AddedToken parse_token(const json& object) {
    const Fields f(object, "added token");
    f.only({"id", "content", "special", "single_word", "lstrip", "rstrip", "normalized"});
    const int64_t id = f.integer("id");
    AddedToken t;
    t.content = f.text("content");
    require(id >= 0 && id <= kMaxTokenId, ErrorKind::CorruptFile,
            "tokenizer.json: added token '{}' has id {}, not 0 to {}", t.content, id, kMaxTokenId);
    t.id = static_cast<TokenId>(id);
    t.special = f.flag("special", false);
    t.single_word = f.flag("single_word", false);
    t.lstrip = f.flag("lstrip", false);
    t.rstrip = f.flag("rstrip", false);
    t.normalized = f.flag("normalized", !t.special);
    return t;
}

void check_against(const AddedToken& t, const Vocab& vocab) {
    const auto id = vocab.find(t.content);
    require(!id || *id == t.id, ErrorKind::CorruptFile,
            "tokenizer.json: added token '{}' has id {}, but {} in the vocabulary", t.content, t.id, id.value_or(-1));
    require(!vocab.has(t.id) || vocab.token(t.id) == t.content, ErrorKind::CorruptFile,
            "tokenizer.json: added token '{}' has id {}, which is '{}' in the vocabulary", t.content, t.id,
            vocab.token(t.id));
}

size_t before_white_space(std::string_view text, size_t begin, size_t end) {
    while (end > begin) {
        const CodePoint c = last_code_point(text.substr(0, end));
        if (!is_white_space(c.value)) break;
        end -= c.size;
    }
    return end;
}

size_t after_white_space(std::string_view text, size_t begin) {
    while (begin < text.size()) {
        const CodePoint c = code_point_at(text, begin);
        if (!is_white_space(c.value)) break;
        begin += c.size;
    }
    return begin;
}

bool inside_word(std::string_view text, size_t begin, size_t end) {
    return (begin > 0 && is_word(last_code_point(text.substr(0, begin)).value)) ||
           (end < text.size() && is_word(code_point_at(text, end).value));
}

}  // namespace

bool AddedToken::is_blank() const {
    for (size_t at = 0; at < content.size();) {
        const CodePoint c = code_point_at(content, at);
        if (!is_white_space(c.value) && c.value != U'▁') return false;
        at += c.size;
    }
    return true;
}

AddedTokens::AddedTokens(const json& list, const Vocab& vocab, const Normalizer& normalizer) {
    require(list.is_array(), ErrorKind::CorruptFile, "tokenizer.json: added_tokens is no list");
    for (const json& object : list) {
        AddedToken t = parse_token(object);
        check_against(t, vocab);
        if (t.content.empty()) continue;
        const auto index = tokens_.size();
        const bool new_id = by_id_.try_emplace(t.id, index).second;
        const bool new_content = by_content_.try_emplace(t.content, index).second;
        if (!new_id && !new_content && tokens_[by_id_[t.id]].content == t.content) continue;  // listed twice
        require(new_id && new_content, ErrorKind::CorruptFile,
                "tokenizer.json: added token '{}' with id {} contradicts another one", t.content, t.id);
        require(t.content.size() <= kMaxContentBytes, ErrorKind::Unsupported,
                "tokenizer.json: added token {} has {} bytes; more than {} are not supported", t.id, t.content.size(),
                kMaxContentBytes);
        NormalText normal{t.content};
        if (t.normalized && normalizer) normalizer(normal);
        t.decoded = std::move(normal.text);
        require(!t.decoded.empty(), ErrorKind::Unsupported,
                "tokenizer.json: added token '{}' that the normalizer takes away is not supported", t.content);
        id_end_ = std::max(id_end_, t.id + 1);
        tokens_.push_back(std::move(t));
    }
    // Of two that are found by the same text, the special one comes first.
    for (const bool special : {true, false})
        for (size_t i = 0; i < tokens_.size(); ++i)
            if (tokens_[i].special == special)
                (tokens_[i].normalized ? normalized_ : as_given_).add(tokens_[i].decoded, static_cast<int32_t>(i));
}

const AddedToken* AddedTokens::by_id(TokenId id) const {
    const auto it = by_id_.find(id);
    return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

std::optional<TokenId> AddedTokens::by_content(std::string_view content) const {
    const auto it = by_content_.find(std::string(content));
    return it == by_content_.end() ? std::nullopt : std::optional<TokenId>(tokens_[it->second].id);
}

void AddedTokens::Trie::add(std::string_view text, int32_t token) {
    if (text.empty()) return;
    first[static_cast<unsigned char>(text[0])] = true;
    uint32_t node = 0;
    for (const char byte : text) {
        const uint64_t key = pair_key(node, static_cast<unsigned char>(byte));
        if (const uint32_t* child = children.find(key)) {
            node = *child;
        } else {
            node = static_cast<uint32_t>(token_at.size());
            token_at.push_back(-1);
            children.set(key, node);
        }
    }
    if (token_at[node] < 0) token_at[node] = token;
}

/// The longest token at `at` that counts there.
AddedTokens::Match AddedTokens::longest(const Trie& trie, std::string_view text, size_t at, const Trust& trust) const {
    Match best;
    uint32_t node = 0;
    for (size_t i = at; i < text.size(); ++i) {
        const uint32_t* child = trie.children.find(pair_key(node, static_cast<unsigned char>(text[i])));
        if (!child) break;
        node = *child;
        if (trie.token_at[node] < 0) continue;
        const AddedToken& t = tokens_[static_cast<size_t>(trie.token_at[node])];
        if (trust.covers(at, i + 1) || t.is_blank()) best = {&t, i + 1};
    }
    return best;
}

std::vector<Section> AddedTokens::find(std::string_view text, bool normalized, const Trust& trust) const {
    const Trie& trie = normalized ? normalized_ : as_given_;
    std::vector<Section> sections;
    size_t done = 0, white_end = 0;  // white_end: where the last run of white space that was looked at ends
    for (size_t at = 0; at < text.size();) {
        if (!trie.first[static_cast<unsigned char>(text[at])]) {
            ++at;
            continue;
        }
        const auto [token, end] = longest(trie, text, at, trust);
        if (!token) {
            ++at;
            continue;
        }
        const size_t begin = token->lstrip ? std::max(before_white_space(text, std::min(done, at), at), done) : at;
        const bool counts = !(token->single_word && inside_word(text, at, end));
        at = end;
        if (!counts) continue;
        if (token->rstrip && end >= white_end) white_end = after_white_space(text, end);
        const size_t stop = token->rstrip ? white_end : end;
        if (begin > done) sections.push_back({{done, begin}});
        if (begin < stop) sections.push_back({{begin, stop}, token->id});  // else the one before has taken it whole
        done = stop;
    }
    if (done < text.size()) sections.push_back({{done, text.size()}});
    return sections;
}

}  // namespace llm
