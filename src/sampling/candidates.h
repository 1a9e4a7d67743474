#pragma once
// Candidates: the tokens that may still be drawn, largest logit first as far as somebody asked. Sorting all of 150,000
// tokens would cost more than everything else that a sampler does.

#include <cstdint>
#include <span>
#include <vector>

#include "src/tokenizer/tokenizer.h"

namespace llm {

struct Candidate {
    float logit = 0;
    TokenId id = 0;
};

class Candidates {
  public:
    /// All tokens with a logit above -infinity; there must be one.
    explicit Candidates(std::span<const float> logits);

    /// The k largest; of equal ones those with the lowest ids.
    void keep_top_k(size_t k);
    /// The fewest largest whose probabilities sum up to at least p; at least one.
    /// Source: Holtzman et al. 2020, arXiv:1904.09751.
    void keep_top_p(double p);
    /// Those at least min_p times as probable as the largest. Source: Nguyen et al. 2024, arXiv:2407.01082.
    void keep_min_p(double min_p);
    /// The token at u (0 to 1) of the distribution with this temperature.
    TokenId draw(double temperature, double u) const;

  private:
    void sort_first(size_t n);
    float largest() const;

    std::vector<Candidate> all_;
    size_t sorted_ = 0;  // so many are the largest, in order
};

}  // namespace llm
