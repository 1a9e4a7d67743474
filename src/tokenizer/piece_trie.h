#pragma once
// PieceTrie: which of many strings a text begins with. Built once from all strings, in arrays: a node's children lie
// side by side, ordered by their bytes.

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

class PieceTrie {
  public:
    /// The strings, by their index; no two are equal. Empty ones are not found.
    explicit PieceTrie(std::span<const std::string_view> strings);

    static constexpr uint32_t kRoot = 0, kNowhere = ~uint32_t{0};

    /// The node that a byte leads to; kNowhere if no string goes on like this.
    uint32_t child(uint32_t node, char byte) const {
        if (node == kRoot) return from_root_[static_cast<unsigned char>(byte)];
        const Node& n = nodes_[node];
        const char* first = labels_.data() + n.children;
        if (n.n_children == 1) return *first == byte ? n.children : kNowhere;
        const void* found = std::memchr(first, byte, n.n_children);
        return found ? n.children + static_cast<uint32_t>(static_cast<const char*>(found) - first) : kNowhere;
    }
    /// The string that ends at a node; -1: none does.
    int32_t string_at(uint32_t node) const { return nodes_[node].string; }

  private:
    struct Node {
        int32_t string = -1;
        uint32_t children = 0;  // the first of them
        uint32_t n_children = 0;
    };

    std::vector<Node> nodes_;
    std::string labels_;  // by node: the byte that leads to it
    std::vector<uint32_t> from_root_;
};

}  // namespace llm
