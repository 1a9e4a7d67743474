#include "src/sampling/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace llm {
namespace {

constexpr size_t kFirstSorted = 128;  // most distributions need no more

bool larger(const Candidate& a, const Candidate& b) { return a.logit > b.logit || (a.logit == b.logit && a.id < b.id); }

}  // namespace

Candidates::Candidates(std::span<const float> logits) {
    all_.reserve(logits.size());
    for (size_t id = 0; id < logits.size(); ++id)
        if (logits[id] > -std::numeric_limits<float>::infinity())
            all_.push_back({logits[id], static_cast<TokenId>(id)});
}

void Candidates::sort_first(size_t n) {
    n = std::min(n, all_.size());
    if (n <= sorted_) return;
    const auto at = [this](size_t i) { return all_.begin() + static_cast<ptrdiff_t>(i); };
    std::partial_sort(at(sorted_), at(n), all_.end(), larger);
    sorted_ = n;
}

float Candidates::largest() const {
    return sorted_ > 0 ? all_[0].logit : std::min_element(all_.begin(), all_.end(), larger)->logit;
}

void Candidates::keep_top_k(size_t k) {
    if (k >= all_.size()) return;
    sort_first(k);
    all_.resize(k);
}

void Candidates::keep_top_p(double p) {
    const double max = largest();
    double total = 0;
    for (const Candidate& c : all_) total += std::exp(c.logit - max);
    double sum = 0;
    for (size_t i = 0; i < all_.size(); ++i) {
        if (i == sorted_) sort_first(std::max(kFirstSorted, 4 * sorted_));
        sum += std::exp(all_[i].logit - max);
        if (sum < p * total) continue;
        all_.resize(i + 1);
        sorted_ = i + 1;
        return;
    }
}

void Candidates::keep_min_p(double min_p) {
    const double least = largest() + std::log(min_p);
    const auto too_small = [least](const Candidate& c) { return c.logit < least; };
    std::erase_if(all_, too_small);  // keeps the order, so what was sorted stays so
    sorted_ = std::min(sorted_, all_.size());
}

TokenId Candidates::draw(double temperature, double u) const {
    const double max = largest();
    std::vector<double> sums;  // cumulative weights
    sums.reserve(all_.size());
    double sum = 0;
    for (const Candidate& c : all_) sums.push_back(sum += std::exp((c.logit - max) / temperature));
    const auto drawn = std::upper_bound(sums.begin(), sums.end(), u * sum);
    // u * sum may round up to sum; then it is the last one with a weight.
    const auto last = std::lower_bound(sums.begin(), sums.end(), sum);
    return all_[static_cast<size_t>(std::min(drawn, last) - sums.begin())].id;
}

}  // namespace llm
