#pragma once
// Lines that a person types, with editing and history where libedit is available, or that a pipe holds.

#include <memory>
#include <string>

namespace cli {

class LineReader {
  public:
    /// Prompts, editing and history only when standard input is a terminal. history_file: where lines typed before come
    /// from and new ones are kept, readable by the user alone; empty: nowhere. A file that cannot be used is no error.
    explicit LineReader(std::string history_file = "");
    ~LineReader();
    LineReader(const LineReader&) = delete;
    LineReader& operator=(const LineReader&) = delete;

    struct Line {
        enum class Kind { Text, End, Interrupted };
        Kind kind = Kind::Text;
        std::string text;  ///< without the newline
    };
    /// The prompt may hold escape sequences between \1 and \1. typed: what stands in the line already, to be edited;
    /// only where lines can be edited. End: Ctrl-D, or the pipe's end. Interrupted: a signal came while waiting; what
    /// was typed is dropped.
    Line read(const std::string& prompt, const std::string& typed = "");
    /// Whether a line can be edited before it is sent.
    bool can_edit() const;

  private:
    struct Editor;
    std::unique_ptr<Editor> editor_;  ///< empty: plain lines
    bool show_prompt_;
};

/// Where a user's chat history lies: $XDG_STATE_HOME/ggmlx/history or ~/.local/state/ggmlx/history; empty without a
/// home.
std::string history_path();

}  // namespace cli
