#pragma once
// Lines that a person types, with editing and history where libedit is available, or that a pipe holds.

#include <memory>
#include <string>

namespace cli {

class LineReader {
  public:
    /// Prompts, editing and history only when standard input is a terminal.
    LineReader();
    ~LineReader();

    struct Line {
        enum class Kind { Text, End, Interrupted };
        Kind kind = Kind::Text;
        std::string text;  ///< without the newline
    };
    /// End: Ctrl-D, or the pipe's end. Interrupted: a signal came while waiting; what was typed is dropped.
    Line read(const std::string& prompt);

  private:
    struct Editor;
    std::unique_ptr<Editor> editor_;  ///< empty: plain lines
    bool show_prompt_;
};

}  // namespace cli
