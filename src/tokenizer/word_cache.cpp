#include "src/tokenizer/word_cache.h"

#include <utility>

namespace llm {

size_t WordCache::find_slot(std::string_view word) const {
    size_t i = std::hash<std::string_view>{}(word) & (slots_.size() - 1);
    while (slots_[i].key_size != 0 && std::string_view(keys_).substr(slots_[i].key, slots_[i].key_size) != word)
        i = (i + 1) & (slots_.size() - 1);
    return i;
}

bool WordCache::find(std::string_view word, std::vector<TokenId>& out) const {
    const Slot& slot = slots_[find_slot(word)];
    if (slot.key_size == 0) return false;
    const auto first = ids_.begin() + slot.ids;
    out.insert(out.end(), first, first + slot.n_ids);
    return true;
}

void WordCache::insert(std::string_view word, std::span<const TokenId> ids) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    slots_[find_slot(word)] = {static_cast<uint32_t>(keys_.size()), static_cast<uint32_t>(ids_.size()),
                               static_cast<uint16_t>(word.size()), static_cast<uint16_t>(ids.size())};
    keys_ += word;
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ++size_;
}

void WordCache::grow() {
    if (slots_.size() == kMaxSlots) return clear();
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& slot : old)
        if (slot.key_size != 0) slots_[find_slot(std::string_view(keys_).substr(slot.key, slot.key_size))] = slot;
}

void WordCache::clear() {
    slots_.assign(kMinSlots, Slot{});
    keys_.clear();
    ids_.clear();
    size_ = 0;
}

}  // namespace llm
