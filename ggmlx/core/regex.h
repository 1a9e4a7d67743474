#pragma once
// Regular expressions that users write (placement and type rules): PCRE2 with bounded work, so that no pattern can hang
// a command.

#include <memory>
#include <string>
#include <string_view>

namespace ggmlx {

class Regex {
  public:
    /// Throws invalid_argument with the position if PCRE2 refuses the pattern.
    explicit Regex(std::string pattern);
    /// True if the pattern matches somewhere in the text. Throws invalid_argument if the search takes too many steps.
    bool search(std::string_view text) const;
    const std::string& pattern() const { return pattern_; }

  private:
    std::string pattern_;
    std::shared_ptr<const void> code_;
};

}  // namespace ggmlx
