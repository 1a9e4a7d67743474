#include "src/tokenizer/piece_trie.h"

#include <algorithm>

namespace llm {
namespace {

/// A node that waits for its children: the sorted strings [begin, end) go through it, `depth` bytes deep.
struct Pending {
    size_t begin, end, depth;
};

}  // namespace

PieceTrie::PieceTrie(std::span<const std::string_view> strings) : from_root_(256, kNowhere) {
    std::vector<int32_t> order;
    for (size_t i = 0; i < strings.size(); ++i)
        if (!strings[i].empty()) order.push_back(static_cast<int32_t>(i));
    const auto text = [&](size_t i) { return strings[static_cast<size_t>(order[i])]; };
    std::sort(order.begin(), order.end(),
              [&](int32_t a, int32_t b) { return strings[static_cast<size_t>(a)] < strings[static_cast<size_t>(b)]; });

    std::vector<Pending> pending = {{0, order.size(), 0}};  // by node: level by level, so children lie side by side
    nodes_.emplace_back();
    labels_.push_back('\0');
    for (size_t node = 0; node < pending.size(); ++node) {
        auto [i, end, depth] = pending[node];
        if (i < end && text(i).size() == depth) nodes_[node].string = order[i++];
        nodes_[node].children = static_cast<uint32_t>(nodes_.size());
        while (i < end) {
            const char byte = text(i)[depth];
            const size_t first = i;
            while (i < end && text(i)[depth] == byte) ++i;
            if (node == kRoot) from_root_[static_cast<unsigned char>(byte)] = static_cast<uint32_t>(nodes_.size());
            pending.push_back({first, i, depth + 1});
            nodes_.emplace_back();
            labels_.push_back(byte);
            ++nodes_[node].n_children;
        }
    }
}

}  // namespace llm
