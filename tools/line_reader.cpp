#include "tools/line_reader.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>

#if GGMLX_HAVE_EDIT
#include <histedit.h>
#endif

namespace cli {
namespace {

LineReader::Line read_plain() {
    std::string text;
    errno = 0;
    if (std::getline(std::cin, text)) return {LineReader::Line::Kind::Text, std::move(text)};
    const bool interrupted = errno == EINTR;
    std::cin.clear();
    std::clearerr(stdin);
    return {interrupted ? LineReader::Line::Kind::Interrupted : LineReader::Line::Kind::End, {}};
}

}  // namespace

#if GGMLX_HAVE_EDIT

struct LineReader::Editor {
    static constexpr int kHistoryLines = 1000;
    std::unique_ptr<EditLine, decltype(&el_end)> edit{el_init("ggmlx", stdin, stdout, stderr), el_end};
    std::unique_ptr<History, decltype(&history_end)> history{history_init(), history_end};
    std::string prompt;

    Editor() {
        HistEvent event;
        ::history(history.get(), &event, H_SETSIZE, kHistoryLines);
        el_set(edit.get(), EL_CLIENTDATA, this);
        el_set(edit.get(), EL_PROMPT, show_prompt);
        el_set(edit.get(), EL_EDITOR, "emacs");
        el_set(edit.get(), EL_HIST, ::history, history.get());
        el_source(edit.get(), nullptr);  // the user's ~/.editrc
    }
    static char* show_prompt(EditLine* edit) {
        Editor* self = nullptr;
        el_get(edit, EL_CLIENTDATA, &self);
        return self->prompt.data();
    }
    Line read() {
        int n = 0;
        errno = 0;
        const char* text = el_gets(edit.get(), &n);
        if (text == nullptr || n <= 0) {
            const bool interrupted = n < 0 && errno == EINTR;
            if (interrupted) el_reset(edit.get());
            return {interrupted ? Line::Kind::Interrupted : Line::Kind::End, {}};
        }
        std::string line(text, static_cast<size_t>(n));
        if (line.ends_with('\n')) line.pop_back();
        HistEvent event;
        if (!line.empty()) ::history(history.get(), &event, H_ENTER, line.c_str());
        return {Line::Kind::Text, std::move(line)};
    }
};

LineReader::LineReader() : show_prompt_(isatty(STDIN_FILENO) == 1) {
    if (show_prompt_) editor_ = std::make_unique<Editor>();
}

LineReader::Line LineReader::read(const std::string& prompt) {
    if (!editor_) return read_plain();
    editor_->prompt = prompt;
    return editor_->read();
}

#else

struct LineReader::Editor {};

LineReader::LineReader() : show_prompt_(isatty(STDIN_FILENO) == 1) {}

LineReader::Line LineReader::read(const std::string& prompt) {
    if (show_prompt_) {
        fmt::print("{}", prompt);
        std::fflush(stdout);
    }
    return read_plain();
}

#endif

LineReader::~LineReader() = default;

}  // namespace cli
