#pragma once
// What Split and Replace search for: a literal or a regular expression (PCRE2 with JIT). Matching never recurses on the
// stack, whatever the text's length.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

/// Bytes [begin, end) of a text.
struct Range {
    uint32_t begin = 0, end = 0;
    uint32_t size() const { return end - begin; }
};

/// Texts must be shorter than this; ranges are 32-bit.
inline constexpr size_t kMaxTextBytes = size_t{1} << 31;

/// Immutable; may be used from any thread.
class Pattern {
  public:
    static Pattern literal(std::string text);
    /// Throws unsupported for constructs that oniguruma_to_pcre2 refuses, corrupt_file for what PCRE2 cannot compile.
    static Pattern oniguruma(std::string_view regex);

    /// Finds matches in one text after the other; keeps the memory that this takes. Owned by one thread.
    class Finder {
      public:
        explicit Finder(const Pattern& pattern);
        ~Finder();
        Finder(Finder&&) noexcept;
        /// Appends all matches that do not overlap, from left to right; an empty match right after another one is
        /// left out. text: valid UTF-8. Throws unsupported when a match takes too many steps or too much memory.
        void find_all(std::string_view text, std::vector<Range>& out);

      private:
        struct State;
        std::unique_ptr<State> state_;
    };

    struct Impl;

  private:
    std::shared_ptr<const Impl> impl_;
};

/// text with every match replaced by content, literally.
std::string replace_all(std::string_view text, const Pattern& pattern, std::string_view content);
/// The same; matches: the places in text that were replaced.
std::string replace_all(std::string_view text, const Pattern& pattern, std::string_view content,
                        std::vector<Range>& matches);

class Fields;
/// The field "pattern" of Split and Replace: {"String": …} or {"Regex": …}.
Pattern parse_pattern(const Fields& fields);

}  // namespace llm
