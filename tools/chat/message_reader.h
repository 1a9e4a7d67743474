#pragma once
// Messages that a person types: a line, several lines, or a command.

#include <optional>
#include <string>

#include "tools/line_reader.h"

namespace cli {

/// How lines make a message: one line is one; a line that ends with a backslash goes on in the next; """ alone on a
/// line begins and ends a message of any lines. With `multiline` a message ends with an empty line.
class MessageReader {
  public:
    MessageReader(LineReader& lines, std::string prompt, bool multiline)
        : lines_(lines), prompt_(std::move(prompt)), multiline_(multiline) {}

    /// End: nothing more comes; a message that the end of input cuts short is given first. Commands ("/…") are always
    /// one line. typed: stands in the first line already.
    LineReader::Line read(const std::string& typed = "");

  private:
    LineReader& lines_;
    std::string prompt_;
    bool multiline_;

    LineReader::Line until(const std::string& end, std::string text);
};

}  // namespace cli
