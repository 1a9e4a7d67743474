// ggmlx chat: a conversation in the terminal. The text so far is continued as it stands: what the user types is
// appended to it and the model goes on from there.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "ggmlx/core/error.h"
#include "src/session/generate.h"
#include "src/session/transcript.h"
#include "tools/commands/commands.h"
#include "tools/engine_flags.h"
#include "tools/interrupt.h"
#include "tools/json_text.h"
#include "tools/line_reader.h"
#include "tools/model_path.h"
#include "tools/sampling_flags.h"
#include "tools/text_input.h"

namespace cli {
namespace {

constexpr const char* kHelp =
    "/help         this text\n"
    "/reset        forget the conversation\n"
    "/save FILE    write the conversation to a file\n"
    "/load FILE    go on with a saved one\n"
    "/exit         leave, as does Ctrl-D\n"
    "Ctrl-C stops an answer; at the prompt, twice leaves.";

struct ChatFlags {
    std::string model;
    EngineFlags engine;
    SamplingFlags sampling;
    ForeignFlags foreign;
    Common common;
};

bool parse_chat(std::span<const std::string> arguments, ChatFlags& flags) {
    Args args("chat",
              "A conversation in the terminal. What you type is appended to the text so far and the model goes on from "
              "there. /help lists what else can be typed.",
              "  ggmlx chat model.ggmx\n"
              "  printf 'Once upon a time\\n' | ggmlx chat model.ggmx --temp 0 -n 50\n");
    args.model(flags.model);
    add_sampling_flags(args, flags.sampling);
    add_engine_flags(args, flags.engine);
    flags.foreign.add_to(args);
    args.common(flags.common);
    return args.parse(arguments);
}

/// One conversation; `ids_` is the whole text so far, of which the session may lack the last token.
class Chat {
  public:
    Chat(const llm::Model& model, llm::Engine& engine, llm::GenerateOptions options, const Common& common)
        : model_(model), session_(engine), options_(std::move(options)), common_(common) {}

    void loop();

  private:
    const llm::Model& model_;
    llm::Session session_;
    llm::GenerateOptions options_;
    const Common& common_;
    std::vector<llm::TokenId> ids_;
    Interrupt interrupt_;

    void answer(const std::string& text);
    /// False to leave.
    bool command(const std::string& line);
    void save(const std::string& path) const;
    void load(const std::string& path);
};

void Chat::answer(const std::string& text) {
    const size_t before = ids_.size();
    const auto added = model_.tokenizer().encode(text, {.add_special = ids_.empty(), .parse_special = false});
    ids_.insert(ids_.end(), added.begin(), added.end());
    try {
        const auto kept = static_cast<size_t>(session_.keep_common_prefix(ids_));
        const auto result =
            llm::generate(session_, std::span(ids_).subspan(kept), options_, [&](std::string_view piece) {
                std::fwrite(piece.data(), 1, piece.size(), stdout);
                std::fflush(stdout);
                return !interrupt_.requested() && !std::ferror(stdout);
            });
        ids_.insert(ids_.end(), result.ids.begin(), result.ids.end());
        fmt::print("\n");
        if (common_.verbose) note(timing_line(result.timings));
        if (result.stop_reason == "context") note("the context is full: /reset starts anew");
    } catch (const ggmlx::Error&) {
        ids_.resize(before);
        throw;
    }
}

void Chat::save(const std::string& path) const {
    std::ofstream file(path, std::ios::binary);
    file << llm::save_transcript(model_, ids_);
    file.close();
    ggmlx::require(file.good(), ggmlx::ErrorKind::Io, "{}: cannot write it", path);
    note(fmt::format("saved {} tokens to {}", ids_.size(), path));
}

void Chat::load(const std::string& path) {
    ids_ = llm::load_transcript(model_, read_text(path));
    fmt::print("{}\n", model_.tokenizer().decode(ids_));
}

bool Chat::command(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    const size_t start = line.find_first_not_of(' ', std::min(space, line.size()));
    const std::string argument = start == line.npos ? "" : line.substr(start);
    if (name == "/exit" || name == "/quit") return false;
    if (name == "/help") {
        note(kHelp);
    } else if (name == "/reset") {
        ids_.clear();
    } else if ((name == "/save" || name == "/load") && argument.empty()) {
        note(fmt::format("{} needs a file name", name));
    } else if (name == "/save") {
        save(argument);
    } else if (name == "/load") {
        load(argument);
    } else {
        note(fmt::format("there is no {}; /help lists what there is", name));
    }
    return true;
}

void Chat::loop() {
    LineReader reader;
    bool interrupted_before = false;
    while (true) {
        interrupt_.clear();
        const LineReader::Line line = reader.read("> ");
        if (line.kind == LineReader::Line::Kind::End) return;
        if (line.kind == LineReader::Line::Kind::Interrupted) {
            if (interrupted_before) return;
            interrupted_before = true;
            note("\nCtrl-C again, or Ctrl-D, leaves");
            continue;
        }
        interrupted_before = false;
        if (line.text.empty()) continue;
        try {
            if (line.text[0] != '/') {
                answer(line.text);
            } else if (!command(line.text)) {
                return;
            }
        } catch (const ggmlx::Error& e) {
            if (!stdin_is_terminal()) throw;  // a script should notice
            note(fmt::format("error: {}", e.what()));
        }
    }
}

}  // namespace

int run_chat(std::span<const std::string> arguments) {
    ChatFlags flags;
    if (!parse_chat(arguments, flags)) return 0;
    if (const auto warning = flags.foreign.warning(); !warning.empty()) note(warning);
    const llm::Model model(open_model(flags.model));
    const auto options = generate_options(flags.sampling, model.generation(), false);
    llm::Engine engine = load_engine(model, engine_options(flags.engine), flags.common);
    print_engine(engine, flags.common);
    if (!flags.common.quiet && stdin_is_terminal()) note("/help lists what can be typed; Ctrl-D leaves");
    Chat(model, engine, options, flags.common).loop();
    return 0;
}

}  // namespace cli
