#include "src/tokenizer/trust.h"

#include <algorithm>

namespace llm {
namespace {

/// Where places of an old text lie in the new one. Places must be asked for in ascending order.
class Moved {
  public:
    explicit Moved(const std::vector<Edit>& edits) : edits_(edits) {}

    /// at_end: a place inside an edit moves to the end of what it became, else to the start.
    size_t operator()(size_t place, bool at_end) {
        for (; next_ < edits_.size() && edits_[next_].end <= place && edits_[next_].begin < place; ++next_) {
            added_ += edits_[next_].new_size;
            removed_ += edits_[next_].end - edits_[next_].begin;
        }
        if (next_ == edits_.size() || edits_[next_].begin >= place) return place + added_ - removed_;
        return edits_[next_].begin + added_ - removed_ + (at_end ? edits_[next_].new_size : 0);
    }

  private:
    const std::vector<Edit>& edits_;
    size_t next_ = 0, added_ = 0, removed_ = 0;
};

/// The first stretch that ends after a place.
auto first_behind(const std::vector<Stretch>& stretches, size_t place) {
    return std::upper_bound(stretches.begin(), stretches.end(), place,
                            [](size_t at, const Stretch& s) { return at < s.end; });
}

}  // namespace

bool Trust::covers(size_t begin, size_t end) const {
    if (!is_mixed()) return all_;
    const auto s = first_behind(stretches_, begin);
    return s != stretches_.end() && s->begin <= begin && end <= s->end;
}

Trust Trust::part(size_t begin, size_t end) const {
    if (!is_mixed()) return *this;
    std::vector<Stretch> stretches;
    for (auto s = first_behind(stretches_, begin); s != stretches_.end() && s->begin < end; ++s)
        stretches.push_back({std::max(s->begin, begin) - begin, std::min(s->end, end) - begin});
    return only(std::move(stretches));
}

Trust Trust::after(const std::vector<Edit>& edits) const {
    Moved moved(edits);
    std::vector<Stretch> stretches;
    for (const Stretch& s : stretches_) {
        const size_t begin = moved(s.begin, true), end = moved(s.end, false);
        if (begin < end) stretches.push_back({begin, end});
    }
    return is_mixed() ? only(std::move(stretches)) : *this;
}

}  // namespace llm
