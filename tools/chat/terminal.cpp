#include "tools/chat/terminal.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace cli {
namespace {

bool stdout_has_colours() {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && !(no_color && *no_color) && term && std::string_view(term) != "dumb";
}

}  // namespace

Style::Style(std::string_view mode) : on_(mode == "on" || (mode == "auto" && stdout_has_colours())) {}

std::string Style::prompt(std::string_view text) const {
    return on_ ? fmt::format("\1\x1b[1;32m\1{}\1\x1b[0m\1", text) : std::string(text);
}

AnswerPrinter::AnswerPrinter(const Style& style, bool quiet)
    : style_(style), quiet_(quiet), to_terminal_(isatty(STDOUT_FILENO) == 1 || style.on()) {}

void AnswerPrinter::write(std::string_view text) {
    if (text.empty()) return;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    at_line_start_ = text.back() == '\n';
}

void AnswerPrinter::thoughts(std::string_view text) {
    if (text.empty()) return;
    if (to_terminal_) {
        if (!thinking_) write(style_.dim());
        write(text);
    } else if (!quiet_) {
        std::fwrite(text.data(), 1, text.size(), stderr);
    }
    thinking_ = true;
}

void AnswerPrinter::end_thoughts() {
    if (!thinking_) return;
    if (to_terminal_)
        write(fmt::format("{}\n\n", style_.plain()));
    else if (!quiet_)
        std::fputs("\n\n", stderr);
    thinking_ = false;
}

void AnswerPrinter::answer(std::string_view text) {
    if (text.empty()) return;
    end_thoughts();
    write(text);
}

void AnswerPrinter::finish() {
    end_thoughts();
    if (!at_line_start_ || !to_terminal_) write("\n");
}

bool AnswerPrinter::good() const { return std::ferror(stdout) == 0; }

}  // namespace cli
