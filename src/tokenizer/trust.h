#pragma once
// Trust: the parts of a text in which added tokens count. What a program wrote (a chat template) is trusted; what a
// user or a tool wrote is text and nothing else. Trust follows the text through the normalizers.

#include <cstddef>
#include <utility>
#include <vector>

namespace llm {

/// A stretch of text, in bytes.
struct Stretch {
    size_t begin = 0, end = 0;
};

/// A change of a text: the stretch [begin, end) of the old one became new_size bytes.
struct Edit {
    size_t begin = 0, end = 0, new_size = 0;
};

class Trust {
  public:
    static Trust all() { return Trust(true, {}); }
    static Trust none() { return Trust(false, {}); }
    /// These stretches only: in order, not empty, with a gap between them.
    static Trust only(std::vector<Stretch> stretches) { return Trust(false, std::move(stretches)); }

    /// Some parts, but not all: only then edits have to be known.
    bool is_mixed() const { return !stretches_.empty(); }
    /// The trusted parts; meaningful only if is_mixed().
    const std::vector<Stretch>& stretches() const { return stretches_; }
    /// The whole stretch is trusted.
    bool covers(size_t begin, size_t end) const;
    /// Of a part of the text, as if it were a text of its own.
    Trust part(size_t begin, size_t end) const;
    /// After edits of the text, which come in order and do not overlap. A stretch shrinks to what certainly came from
    /// it alone; text inserted at its very start is counted to it.
    Trust after(const std::vector<Edit>& edits) const;

  private:
    Trust(bool all, std::vector<Stretch> stretches) : all_(all), stretches_(std::move(stretches)) {}

    bool all_;
    std::vector<Stretch> stretches_;  // empty: all or nothing
};

}  // namespace llm
