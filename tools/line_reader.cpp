#include "tools/line_reader.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>

#if GGMLX_HAVE_EDIT
#include <histedit.h>
#endif

namespace cli {
namespace {

LineReader::Line read_plain_line() {
    std::string text;
    errno = 0;
    if (std::getline(std::cin, text)) return {LineReader::Line::Kind::Text, std::move(text)};
    const bool interrupted = errno == EINTR;
    std::cin.clear();
    std::clearerr(stdin);
    return {interrupted ? LineReader::Line::Kind::Interrupted : LineReader::Line::Kind::End, {}};
}

}  // namespace

std::string history_path() {
    const char* state = std::getenv("XDG_STATE_HOME");
    const char* home = std::getenv("HOME");
    if (state && *state) return std::string(state) + "/ggmlx/history";
    return home && *home ? std::string(home) + "/.local/state/ggmlx/history" : "";
}

#if GGMLX_HAVE_EDIT

struct LineReader::Editor {
    static constexpr int kHistoryLines = 1000;
    static constexpr char kEscape = '\1';  // around what takes no room on the screen
    std::unique_ptr<EditLine, decltype(&el_end)> edit{el_init("ggmlx", stdin, stdout, stderr), el_end};
    std::unique_ptr<History, decltype(&history_end)> history{history_init(), history_end};
    std::string prompt, history_file;

    explicit Editor(std::string file) : history_file(std::move(file)) {
        HistEvent event;
        ::history(history.get(), &event, H_SETSIZE, kHistoryLines);
        ::history(history.get(), &event, H_SETUNIQUE, 1);
        if (!history_file.empty()) ::history(history.get(), &event, H_LOAD, history_file.c_str());
        el_set(edit.get(), EL_CLIENTDATA, this);
        el_set(edit.get(), EL_PROMPT_ESC, show_prompt, kEscape);
        el_set(edit.get(), EL_EDITOR, "emacs");
        el_set(edit.get(), EL_HIST, ::history, history.get());
        el_source(edit.get(), nullptr);  // the user's ~/.editrc
    }
    static char* show_prompt(EditLine* edit) {
        Editor* self = nullptr;
        el_get(edit, EL_CLIENTDATA, &self);
        return self->prompt.data();
    }
    Line read(const std::string& typed) {
        if (!typed.empty()) el_push(edit.get(), typed.c_str());
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
        if (!line.empty()) remember(line);
        return {Line::Kind::Text, std::move(line)};
    }
    /// Written at once, so that nothing is lost when the program is killed.
    void remember(const std::string& line) {
        HistEvent event;
        ::history(history.get(), &event, H_ENTER, line.c_str());
        if (history_file.empty()) return;
        std::error_code ignored;
        std::filesystem::create_directories(std::filesystem::path(history_file).parent_path(), ignored);
        const mode_t before = umask(S_IRWXG | S_IRWXO);
        ::history(history.get(), &event, H_SAVE, history_file.c_str());
        umask(before);
    }
};

LineReader::LineReader(std::string history_file) : show_prompt_(isatty(STDIN_FILENO) == 1) {
    if (!show_prompt_) return;
    std::setlocale(LC_CTYPE, "");  // libedit edits characters, not bytes, in the user's encoding
    editor_ = std::make_unique<Editor>(std::move(history_file));
}

LineReader::Line LineReader::read(const std::string& prompt, const std::string& typed) {
    if (!editor_) return read_plain_line();
    editor_->prompt = prompt;
    return editor_->read(typed);
}

#else

struct LineReader::Editor {};

LineReader::LineReader(std::string) : show_prompt_(isatty(STDIN_FILENO) == 1) {}

LineReader::Line LineReader::read(const std::string& prompt, const std::string&) {
    if (show_prompt_) {
        for (char c : prompt)
            if (c != '\1') std::fputc(c, stdout);
        std::fflush(stdout);
    }
    return read_plain_line();
}

#endif

LineReader::~LineReader() = default;
bool LineReader::can_edit() const { return editor_ != nullptr; }

}  // namespace cli
