#include "tools/chat/chat.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <utility>

#include "ggmlx/core/error.h"
#include "ggmlx/core/suggest.h"
#include "src/session/transcript.h"
#include "tools/args.h"
#include "tools/engine_flags.h"
#include "tools/json_text.h"
#include "tools/text_input.h"

namespace cli {

const char* const kChatHelp =
    "/regen          answer the last message once more\n"
    "/edit [TEXT]    take the last message back and send another in its place\n"
    "/system [TEXT]  give the model another system prompt, or none\n"
    "/set [NAME X]   change a setting such as temp, top-k, seed; alone: list them\n"
    "/tokens         how full the context is\n"
    "/reset          forget the conversation\n"
    "/save FILE      write the conversation to a file\n"
    "/load FILE      go on with a saved one\n"
    "/help           this text\n"
    "/exit           leave, as does Ctrl-D\n"
    "A line that ends with \\ goes on in the next; \"\"\" begins and ends a message of several lines.\n"
    "Ctrl-C stops an answer; at the prompt, twice leaves.";

Chat::Chat(const llm::Model& model, llm::Engine& engine, llm::Conversation conversation, ChatSettings settings,
           std::optional<llm::ReasoningMarkers> markers, const Style& style, bool quiet)
    : model_(model),
      session_(engine),
      conversation_(std::move(conversation)),
      settings_(std::move(settings)),
      markers_(std::move(markers)),
      style_(style),
      quiet_(quiet) {}

void Chat::attempt(const std::function<void()>& change) {
    const auto before = conversation_.messages();
    try {
        change();
    } catch (const ggmlx::Error&) {
        conversation_.restore(before);
        throw;
    }
}

void Chat::say(const std::string& text) {
    const bool replaces = std::exchange(replace_last_, false);
    attempt([&] {
        if (replaces) conversation_.drop_user();
        conversation_.add_user(text);
        answer();
    });
}

void Chat::answer() {
    const llm::ChatPrompt prompt = conversation_.prompt();
    const auto kept = static_cast<size_t>(session_.keep_common_prefix(prompt.ids));
    std::optional<llm::ReasoningStream> split;
    if (markers_) split.emplace(*markers_, prompt.text);
    AnswerPrinter printer(style_, quiet_);
    std::string thoughts, content;
    const auto show_piece = [&](const llm::ReasoningStream::Piece& piece) {
        printer.thoughts(piece.thoughts);
        printer.answer(piece.answer);
        thoughts += piece.thoughts;
        content += piece.answer;
    };
    llm::Generated result =
        llm::generate(session_, std::span(prompt.ids).subspan(kept), settings_.generate, [&](std::string_view text) {
            show_piece(split ? split->push(text) : llm::ReasoningStream::Piece{"", std::string(text)});
            return !interrupt_.requested() && printer.good();
        });
    if (split) show_piece(split->finish());
    printer.finish();
    last_ = result.timings;
    if (settings_.show_timings) note(timing_line(result.timings));
    if (result.stop_reason == "context") note("the context is full: /reset starts anew, a larger -c makes room");
    if (result.stop_reason == "eos") result.ids.pop_back();
    conversation_.add_answer(prompt, std::move(result.ids), result.text, std::move(thoughts), std::move(content));
}

void Chat::regenerate() {
    if (conversation_.messages().empty() || conversation_.messages().back().role == "system") {
        note("there is nothing to answer yet");
        return;
    }
    attempt([&] {
        conversation_.drop_answer();
        answer();
    });
}

void Chat::edit(const std::string& text) {
    const auto last = conversation_.last_user();
    if (!last) {
        note("there is no message to edit yet");
        return;
    }
    replace_last_ = true;
    if (!text.empty()) return say(text);
    edit_ = *last;
    std::replace(edit_.begin(), edit_.end(), '\n', ' ');  // one line is edited
}

void Chat::set(const std::string& argument) {
    if (argument.empty()) {
        note(list_settings(settings_));
        return;
    }
    const size_t space = argument.find_first_of(" =");
    const size_t value = argument.find_first_not_of(" =", std::min(space, argument.size()));
    change_setting(settings_, argument.substr(0, space), value == argument.npos ? "" : argument.substr(value));
}

void Chat::set_system(const std::string& text) {
    conversation_.set_system(text);
    note(text.empty() ? "no system prompt from now on" : "the system prompt is changed");
}

void Chat::save(const std::string& path) const {
    std::ofstream file(path, std::ios::binary);
    file << llm::save_transcript(model_, conversation_.messages());
    file.close();
    ggmlx::require(file.good(), ggmlx::ErrorKind::Io, "{}: cannot write it", path);
    note(fmt::format("saved {} messages to {}", conversation_.messages().size(), path));
}

void Chat::load(const std::string& path) {
    conversation_.restore(llm::load_transcript(model_, read_text(path)));
    for (const llm::ChatMessage& message : conversation_.messages()) show(message);
}

void Chat::show(const llm::ChatMessage& message) const {
    if (message.role == "assistant") {
        AnswerPrinter printer(style_, quiet_);
        printer.thoughts(message.reasoning);
        printer.answer(message.content);
        printer.finish();
    } else {
        fmt::print("{}{}: {}{}\n", style_.dim(), message.role, message.content, style_.plain());
    }
}

void Chat::count_tokens() const {
    const int64_t n_ctx = session_.engine().n_ctx();
    const int64_t used = static_cast<int64_t>(conversation_.prompt().ids.size());
    note(fmt::format("{} messages, {} of {} tokens ({:.0f} %)", conversation_.messages().size(), used, n_ctx,
                     100.0 * static_cast<double>(used) / static_cast<double>(n_ctx)));
    if (last_.prompt_n > 0)
        note(fmt::format("last answer: {} tokens from the cache; {}", last_.cache_n, timing_line(last_)));
}

Chat::Next Chat::command(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    const size_t start = line.find_first_not_of(' ', std::min(space, line.size()));
    const std::string argument = start == line.npos ? "" : line.substr(start);
    replace_last_ = false;
    if (name == "/exit" || name == "/quit" || name == "/bye") return Next::Leave;

    struct Command {
        const char* name;
        std::function<void()> run;
        bool needs_file = false;
    };
    const Command commands[] = {
        {"/help", [] { note(kChatHelp); }},         {"/regen", [&] { regenerate(); }},
        {"/edit", [&] { edit(argument); }},         {"/system", [&] { set_system(argument); }},
        {"/set", [&] { set(argument); }},           {"/tokens", [&] { count_tokens(); }},
        {"/reset", [&] { conversation_.clear(); }}, {"/save", [&] { save(argument); }, true},
        {"/load", [&] { load(argument); }, true},
    };
    const auto* found = std::find_if(std::begin(commands), std::end(commands),
                                     [&](const Command& command) { return name == command.name; });
    if (found == std::end(commands)) {
        std::vector<std::string> names{"/exit"};
        for (const Command& command : commands) names.push_back(command.name);
        throw UsageError(fmt::format("there is no {}{}", name, ggmlx::did_you_mean(name, names)));
    }
    if (found->needs_file && argument.empty()) throw UsageError(fmt::format("{} needs a file name", name));
    found->run();
    return Next::Read;
}

}  // namespace cli
