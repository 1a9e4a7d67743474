#include "tools/chat/message_reader.h"

#include <utility>

namespace cli {
namespace {

constexpr const char* kMore = ". ";
constexpr const char* kFence = "\"\"\"";

using Kind = LineReader::Line::Kind;

}  // namespace

/// Lines up to one that equals `end`, behind `text`.
LineReader::Line MessageReader::until(const std::string& end, std::string text) {
    for (bool first = text.empty();; first = false) {
        LineReader::Line line = lines_.read(kMore);
        if (line.kind == Kind::Interrupted) return line;
        if (line.kind == Kind::End || line.text == end) return {Kind::Text, std::move(text)};
        text += (first ? "" : "\n") + line.text;
    }
}

LineReader::Line MessageReader::read(const std::string& typed) {
    LineReader::Line line = lines_.read(prompt_, typed);
    if (line.kind != Kind::Text || line.text.starts_with('/')) return line;
    if (line.text == kFence) return until(kFence, "");
    if (multiline_ && !line.text.empty()) return until("", std::move(line.text));
    while (line.text.ends_with('\\')) {
        const LineReader::Line more = lines_.read(kMore);
        if (more.kind == Kind::Interrupted) return more;
        line.text.back() = '\n';
        if (more.kind == Kind::End) break;
        line.text += more.text;
    }
    return line;
}

}  // namespace cli
