#pragma once
// The heart of BPE: symbols are joined, two neighbours at a time, in the order of the merge list. Among possible merges
// the lowest rank goes first, and of equal ranks the leftmost.

#include <cstdint>
#include <queue>
#include <vector>

#include "src/tokenizer/flat_map.h"
#include "src/tokenizer/tokenizer.h"

namespace llm {

/// What a pair of neighbours becomes.
struct Merge {
    uint32_t rank = 0;  ///< place in the merge list
    TokenId id = 0;
};

/// The merge list: key pair_key(left id, right id).
using MergeTable = FlatMap<Merge>;

/// Candidate positions by (rank, position). Positions of one rank mostly come in order, so each rank has a list, sorted
/// once when its turn comes; a heap would cost several cache misses for each of the millions of symbols of a long word.
class MergeQueue {
  public:
    struct Candidate {
        uint32_t rank = 0, position = 0;
    };
    explicit MergeQueue(size_t n_ranks) : list_of_rank_(n_ranks, -1) {}

    void push(Candidate c);
    /// Removes the first candidate; false if there is none.
    bool pop(Candidate& c);

  private:
    /// Candidates of one rank. Those that come after its turn began wait in `late`, a heap.
    struct List {
        std::vector<uint32_t> positions;
        size_t next = 0;
        bool begun = false;
        std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> late;

        bool empty() const { return next == positions.size() && late.empty(); }
        uint32_t take();
    };

    std::vector<int32_t> list_of_rank_;
    std::vector<List> lists_;
    std::vector<int32_t> free_lists_;
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ranks_;  // those with candidates
};

/// Joins the symbols in place, by looking at all of them for every merge: best for a few dozen.
void merge_short(const MergeTable& merges, std::vector<TokenId>& symbols);

/// The same result in O(n log n) for any number. The queue must be empty, and is left so. Returns how many candidates
/// it looked at: less than three for every symbol.
size_t merge_long(const MergeTable& merges, MergeQueue& queue, std::vector<TokenId>& symbols);

}  // namespace llm
