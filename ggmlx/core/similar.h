#pragma once
// "Did you mean …": which of the known names resemble what somebody wrote.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ggmlx {

/// At most n names in order of likeness, best first; names too far away (more than half of the letters differ) are left
/// out. With anywhere, `wanted` is compared with the closest part of each name, as for a search pattern.
std::vector<std::string> similar_names(std::string_view wanted, std::span<const std::string> names, size_t n,
                                       bool anywhere = false);

/// The same as the tail of a message: "; did you mean a, b or c?", or nothing when no name is near.
std::string did_you_mean(std::string_view wanted, std::span<const std::string> names, size_t n = 1,
                         bool anywhere = false);

}  // namespace ggmlx
