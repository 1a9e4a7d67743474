#pragma once
// How chat looks: colours on a terminal, plain text everywhere else.

#include <string>
#include <string_view>

namespace cli {

/// Escape sequences, or nothing.
class Style {
  public:
    /// mode: "auto" (colours if standard output is a terminal that has them and NO_COLOR is not set), "on" or "off".
    explicit Style(std::string_view mode);
    bool on() const { return on_; }
    std::string_view dim() const { return on_ ? "\x1b[2m" : ""; }
    std::string_view plain() const { return on_ ? "\x1b[0m" : ""; }
    /// A prompt for LineReader.
    std::string prompt(std::string_view text) const;

  private:
    bool on_;
};

/// Writes an answer as it comes: thoughts dimmed, then the answer. Where standard output is no terminal it carries the
/// answer alone and thoughts go to standard error.
class AnswerPrinter {
  public:
    AnswerPrinter(const Style& style, bool quiet);
    void thoughts(std::string_view text);
    void answer(std::string_view text);
    /// Ends the line.
    void finish();
    /// False once standard output takes no more.
    bool good() const;

  private:
    const Style& style_;
    bool quiet_, to_terminal_;
    bool thinking_ = false, at_line_start_ = true;

    void end_thoughts();
    void write(std::string_view text);
};

}  // namespace cli
