#include "src/session/step.h"

#include <algorithm>

namespace llm {

namespace {

/// The next part of an item, as large as the step's room allows; n_tokens is 0 if there is none.
StepPart next_part(size_t item, const StepItem& i, int64_t first, const Step& step, const StepLimits& limits) {
    const int64_t first_output = i.n_tokens - i.n_outputs;
    const int64_t without_output = std::max<int64_t>(first_output - first, 0);
    const int64_t n = std::min(
        {i.n_tokens - first, limits.n_tokens - step.n_tokens, without_output + limits.n_outputs - step.n_outputs});
    return {item, first, n, std::max<int64_t>(n - without_output, 0)};
}

}  // namespace

std::vector<Step> cut_into_steps(std::span<const StepItem> items, const StepLimits& limits) {
    std::vector<int64_t> done(items.size(), 0);
    std::vector<Step> steps;
    for (size_t next = 0; next < items.size();) {
        Step step;
        for (size_t i = next; i < items.size(); ++i) {
            if (done[i] == items[i].n_tokens) continue;
            if (static_cast<int64_t>(step.parts.size()) == limits.n_sequences) break;
            const StepPart part = next_part(i, items[i], done[i], step, limits);
            if (part.n_tokens == 0) break;
            step.parts.push_back(part);
            step.n_tokens += part.n_tokens;
            step.n_outputs += part.n_outputs;
            done[i] += part.n_tokens;
        }
        while (next < items.size() && done[next] == items[next].n_tokens) ++next;
        if (!step.parts.empty()) steps.push_back(std::move(step));
    }
    return steps;
}

int64_t plan_size(int64_t n, int64_t max) {
    for (int64_t size : {1, 2, 4, 6, 8})
        if (n <= size) return std::min(size, max);
    for (int64_t power = 16;; power *= 2) {
        if (n <= power) return std::min(power, max);
        if (n <= power + power / 2) return std::min(power + power / 2, max);
    }
}

}  // namespace llm
