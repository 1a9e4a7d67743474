#pragma once
// A template's string: UTF-8 text that remembers which of its bytes came from where. Whatever makes a string of others
// goes through TextBuilder, so that the origins follow.

#include <string>
#include <string_view>
#include <vector>

#include "src/chat/prompt.h"

namespace llm::jinja {

/// Immutable once it is the value of a string.
struct Text {
    std::string bytes;      ///< valid UTF-8
    std::vector<Run> runs;  ///< as Prompt::runs; empty: all of it is the template's
    size_t n_chars = 0;     ///< code points
    bool markup = false;    ///< marked safe: joining it with other text escapes the other for HTML

    Text() = default;
    explicit Text(std::string utf8, Origin origin = Origin::Template);

    bool is_ascii() const { return n_chars == bytes.size(); }
    /// The byte where character i begins; bytes.size() for i = n_chars.
    size_t byte_of(size_t i) const;
    Origin origin_at(size_t byte) const;
};

class TextBuilder {
  public:
    void append(std::string_view bytes, Origin origin = Origin::Template);
    void append(const Text& text) { append(text, 0, text.bytes.size()); }
    /// The bytes [begin, end) of a text, with their origins.
    void append(const Text& text, size_t begin, size_t end);
    size_t size() const { return bytes_.size(); }
    /// The text; the builder is empty afterwards.
    Text take();

  private:
    std::string bytes_;
    std::vector<Run> runs_;
};

size_t count_chars(std::string_view utf8);

}  // namespace llm::jinja
