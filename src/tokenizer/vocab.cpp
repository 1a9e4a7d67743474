#include "src/tokenizer/vocab.h"

#include <algorithm>
#include <bit>

#include "ggmlx/core/error.h"

namespace llm {

using ggmlx::ErrorKind;
using ggmlx::require;

Vocab::Vocab(std::string arena, const std::vector<Entry>& entries) : arena_(std::move(arena)) {
    int64_t largest = -1;
    for (const Entry& e : entries) {
        require(e.id >= 0 && e.id <= kMaxTokenId, ErrorKind::CorruptFile,
                "tokenizer.json: token '{}' has id {}, not 0 to {}", std::string_view(arena_).substr(e.offset, e.size),
                e.id, kMaxTokenId);
        largest = std::max(largest, e.id);
    }
    tokens_.resize(static_cast<size_t>(largest + 1));
    slots_.assign(std::bit_ceil(2 * entries.size() + 1), -1);
    for (const Entry& e : entries) {
        Span& span = tokens_[static_cast<size_t>(e.id)];
        require(!span.used, ErrorKind::CorruptFile, "tokenizer.json: tokens '{}' and '{}' both have id {}",
                spelling(span), std::string_view(arena_).substr(e.offset, e.size), e.id);
        span = {e.offset, e.size, true};
        TokenId& slot = slots_[find_slot(spelling(span))];
        require(slot < 0, ErrorKind::CorruptFile, "tokenizer.json: token '{}' is listed twice, as {} and {}",
                spelling(span), slot, e.id);
        slot = static_cast<TokenId>(e.id);
    }
}

size_t Vocab::find_slot(std::string_view token) const {
    size_t i = std::hash<std::string_view>{}(token) & (slots_.size() - 1);
    while (slots_[i] >= 0 && spelling(tokens_[static_cast<size_t>(slots_[i])]) != token)
        i = (i + 1) & (slots_.size() - 1);
    return i;
}

std::optional<TokenId> Vocab::find(std::string_view token) const {
    const TokenId id = slots_[find_slot(token)];
    return id < 0 ? std::nullopt : std::optional<TokenId>(id);
}

bool Vocab::has(TokenId id) const { return id >= 0 && id < id_end() && tokens_[static_cast<size_t>(id)].used; }

std::string_view Vocab::token(TokenId id) const {
    return has(id) ? spelling(tokens_[static_cast<size_t>(id)]) : std::string_view();
}

}  // namespace llm
