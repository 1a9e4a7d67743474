#pragma once
// "Did you mean": the candidates nearest to what somebody typed.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ggmlx {

/// Up to n candidates by edit distance to `typed`, nearest first; names that differ only in their numbers count once.
/// Characters that only mean something in a regular expression are ignored in `typed`.
std::vector<std::string> nearest(std::string_view typed, std::span<const std::string> candidates, size_t n = 3);

/// ": did you mean a, b or c?", or nothing when there are no candidates.
std::string did_you_mean(std::string_view typed, std::span<const std::string> candidates);

}  // namespace ggmlx
