#include "src/tokenizer/merge.h"

#include <algorithm>

namespace llm {
namespace {

const Merge* find_merge(const MergeTable& merges, TokenId left, TokenId right) {
    return merges.find(pair_key(static_cast<uint32_t>(left), static_cast<uint32_t>(right)));
}

}  // namespace

uint32_t MergeQueue::List::take() {
    if (!begun) {
        begun = true;
        if (!std::is_sorted(positions.begin(), positions.end())) std::sort(positions.begin(), positions.end());
    }
    const bool from_late = next == positions.size() || (!late.empty() && late.top() < positions[next]);
    if (!from_late) return positions[next++];
    const uint32_t position = late.top();
    late.pop();
    return position;
}

void MergeQueue::push(Candidate c) {
    int32_t& index = list_of_rank_[c.rank];
    if (index < 0) {
        if (free_lists_.empty()) {
            free_lists_.push_back(static_cast<int32_t>(lists_.size()));
            lists_.emplace_back();
        }
        index = free_lists_.back();
        free_lists_.pop_back();
        ranks_.push(c.rank);
    }
    List& list = lists_[static_cast<size_t>(index)];
    if (list.begun)
        list.late.push(c.position);
    else
        list.positions.push_back(c.position);
}

bool MergeQueue::pop(Candidate& c) {
    if (ranks_.empty()) return false;
    c.rank = ranks_.top();
    int32_t& index = list_of_rank_[c.rank];
    List& list = lists_[static_cast<size_t>(index)];
    c.position = list.take();
    if (list.empty()) {
        list.positions.clear();
        list.next = 0;
        list.begun = false;
        free_lists_.push_back(index);
        index = -1;
        ranks_.pop();
    }
    return true;
}

void merge_short(const MergeTable& merges, std::vector<TokenId>& symbols) {
    std::vector<const Merge*> found;  // of every symbol with the next one
    for (size_t i = 0; i + 1 < symbols.size(); ++i) found.push_back(find_merge(merges, symbols[i], symbols[i + 1]));
    for (;;) {
        size_t best = found.size();
        for (size_t i = 0; i < found.size(); ++i)
            if (found[i] && (best == found.size() || found[i]->rank < found[best]->rank)) best = i;
        if (best == found.size()) return;
        symbols[best] = found[best]->id;
        symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
        found.erase(found.begin() + static_cast<ptrdiff_t>(best));
        if (best < found.size()) found[best] = find_merge(merges, symbols[best], symbols[best + 1]);
        if (best > 0) found[best - 1] = find_merge(merges, symbols[best - 1], symbols[best]);
    }
}

size_t merge_long(const MergeTable& merges, MergeQueue& queue, std::vector<TokenId>& symbols) {
    constexpr TokenId kGone = -1;  // joined to the symbol before
    const auto n = static_cast<uint32_t>(symbols.size());
    std::vector<uint32_t> next(n), previous(n);
    for (uint32_t i = 0; i < n; ++i) {
        next[i] = i + 1;
        previous[i] = i - 1;  // of 0: past the end
    }
    const auto consider = [&](uint32_t i) {
        if (const Merge* m = find_merge(merges, symbols[i], symbols[next[i]])) queue.push({m->rank, i});
    };
    for (uint32_t i = 0; i + 1 < n; ++i) consider(i);
    size_t n_candidates = 0;
    for (MergeQueue::Candidate c; queue.pop(c);) {
        ++n_candidates;
        const uint32_t left = c.position, right = next[left];
        if (symbols[left] == kGone || right == n) continue;
        const Merge* m = find_merge(merges, symbols[left], symbols[right]);
        if (!m || m->rank != c.rank) continue;  // one of the two was joined to another meanwhile
        symbols[left] = m->id;
        symbols[right] = kGone;
        next[left] = next[right];
        if (next[left] < n) {
            previous[next[left]] = left;
            consider(left);
        }
        if (previous[left] < n) consider(previous[left]);
    }
    symbols.erase(std::remove(symbols.begin(), symbols.end(), kGone), symbols.end());
    return n_candidates;
}

}  // namespace llm
