#pragma once
// Tensors of a source that nobody asked for: each must be covered by a pattern of the user's --skip, or it is an error.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ggmlx/core/regex.h"

namespace convert {

class Leftovers {
  public:
    /// Throws invalid_argument for a bad pattern.
    explicit Leftovers(std::span<const std::string> skip);
    void add(const std::string& name);
    /// Throws unsupported listing all names that no pattern covers, invalid_argument for a pattern that covers none.
    void require_known() const;
    /// What was skipped, for the user.
    std::vector<std::string> notes() const;

  private:
    std::vector<std::pair<ggmlx::Regex, int64_t>> patterns_;  ///< and how many names each covers
    std::vector<std::string> unknown_, all_;
};

}  // namespace convert
