#pragma once
// Cutting a batch into steps, and padding a step to a size that a plan exists for. Pure arithmetic.

#include <cstdint>
#include <span>
#include <vector>

namespace llm {

/// The most one step may hold.
struct StepLimits {
    int64_t n_tokens = 512;
    int64_t n_outputs = 1;
    int64_t n_sequences = 1;
};

/// What one sequence asks of a batch: its new tokens, and logits of the last n_outputs of them (0 … n_tokens).
struct StepItem {
    int64_t n_tokens = 0;
    int64_t n_outputs = 0;
};

/// Tokens [first, first + n_tokens) of an item; the last n_outputs of them want logits.
struct StepPart {
    size_t item = 0;
    int64_t first = 0;
    int64_t n_tokens = 0;
    int64_t n_outputs = 0;
    bool operator==(const StepPart&) const = default;
};

/// Parts in the order of their rows; every item at most once.
struct Step {
    std::vector<StepPart> parts;
    int64_t n_tokens = 0;
    int64_t n_outputs = 0;
};

/// Steps that together hold every token of every item, each item's in order. A step takes items in their order until a
/// limit is reached.
std::vector<Step> cut_into_steps(std::span<const StepItem> items, const StepLimits& limits);

/// The smallest plan size that holds n: 1 2 4 6 8 16 24 32 48 64 96 128 …, at most `max`. n is between 1 and max.
int64_t plan_size(int64_t n, int64_t max);

}  // namespace llm
