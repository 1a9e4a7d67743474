#include "src/tokenizer/vocab.h"

#include <algorithm>
#include <bit>

#include "ggmlx/core/error.h"

namespace llm {
namespace {

uint32_t hash_of(std::string_view token) { return static_cast<uint32_t>(std::hash<std::string_view>{}(token)); }

}  // namespace

using ggmlx::ErrorKind;
using ggmlx::require;

Vocab::Vocab(std::string arena, const std::vector<Entry>& entries, Repeated repeated) : arena_(std::move(arena)) {
    require(arena_.size() < kNone, ErrorKind::Unsupported, "tokenizer.json: the vocabulary takes more than 4 GiB");
    int64_t largest = -1;
    for (const Entry& e : entries) {
        require(e.id >= 0 && e.id <= kMaxTokenId, ErrorKind::CorruptFile,
                "tokenizer.json: token '{}' has id {}, not 0 to {}", std::string_view(arena_).substr(e.offset, e.size),
                e.id, kMaxTokenId);
        largest = std::max(largest, e.id);
    }
    tokens_.resize(static_cast<size_t>(largest + 1));
    slots_.resize(std::bit_ceil(2 * entries.size() + 1));
    for (const Entry& e : entries) {
        Span& span = tokens_[static_cast<size_t>(e.id)];
        const std::string_view token = std::string_view(arena_).substr(e.offset, e.size);
        require(span.offset == kNone, ErrorKind::CorruptFile, "tokenizer.json: tokens '{}' and '{}' both have id {}",
                this->token(static_cast<TokenId>(e.id)), token, e.id);
        span = {static_cast<uint32_t>(e.offset), static_cast<uint32_t>(e.size)};
        const uint32_t hash = hash_of(token);
        Slot& slot = slots_[find_slot(token, hash)];
        require(slot.id < 0 || repeated == Repeated::LastCounts, ErrorKind::CorruptFile,
                "tokenizer.json: token '{}' is listed twice, as {} and {}", token, slot.id, e.id);
        slot = {hash, static_cast<TokenId>(e.id)};
    }
}

size_t Vocab::find_slot(std::string_view token, uint32_t hash) const {
    const auto matches = [&](const Slot& slot) {
        return slot.hash == hash && spelling(tokens_[static_cast<size_t>(slot.id)]) == token;
    };
    size_t i = hash & (slots_.size() - 1);
    while (slots_[i].id >= 0 && !matches(slots_[i])) i = (i + 1) & (slots_.size() - 1);
    return i;
}

std::optional<TokenId> Vocab::find(std::string_view token) const {
    const TokenId id = slots_[find_slot(token, hash_of(token))].id;
    return id < 0 ? std::nullopt : std::optional<TokenId>(id);
}

bool Vocab::has(TokenId id) const {
    return id >= 0 && id < id_end() && tokens_[static_cast<size_t>(id)].offset != kNone;
}

std::string_view Vocab::token(TokenId id) const {
    return has(id) ? spelling(tokens_[static_cast<size_t>(id)]) : std::string_view();
}

}  // namespace llm
