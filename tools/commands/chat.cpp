// ggmlx chat: a conversation in the terminal, or through a pipe.

#include <unistd.h>

#include "ggmlx/core/error.h"
#include "tools/chat/chat.h"
#include "tools/chat/message_reader.h"
#include "tools/chat/template_flags.h"
#include "tools/commands/commands.h"
#include "tools/engine_flags.h"
#include "tools/model_path.h"
#include "tools/sampling_flags.h"
#include "tools/text_input.h"

namespace cli {
namespace {

struct ChatFlags {
    std::string model, system, system_file, prompt, color = "auto";
    bool single_turn = false, multiline = false, timings = false;
    TemplateFlags chat_template;
    EngineFlags engine;
    SamplingFlags sampling;
    ForeignFlags foreign;
    Common common;
};

bool parse_chat(std::span<const std::string> arguments, ChatFlags& flags) {
    Args args("chat",
              "A conversation. Messages are rendered by the model's chat template; a model without one continues the "
              "text so far. /help lists what can be typed besides messages. Each line of a pipe is a message.",
              "  ggmlx chat model.ggmx\n"
              "  ggmlx chat model.ggmx -sys \"Answer in one word.\" --temp 0\n"
              "  ggmlx chat model.ggmx -p \"What is the capital of France?\" -st\n"
              "  printf 'Hello!\\nAnd now in French.\\n' | ggmlx chat model.ggmx\n");
    args.model(flags.model);
    args.option("-sys,--system-prompt", flags.system, "TEXT", "the system prompt");
    args.option("-sysf,--system-prompt-file", flags.system_file, "FILE", "the system prompt from a file");
    args.option("-p,--prompt", flags.prompt, "TEXT", "the first message");
    args.flag("-st,--single-turn", flags.single_turn, "leave after one answer");
    args.flag("-mli,--multiline-input", flags.multiline, "a message ends with an empty line");
    args.flag("--show-timings", flags.timings, "tokens per second after each answer; also -v");
    args.choice("--color", flags.color, {"auto", "on", "off"}, "colours (auto: on a terminal, unless NO_COLOR is set)");
    flags.chat_template.add_to(args);
    add_sampling_flags(args, flags.sampling);
    add_engine_flags(args, flags.engine);
    flags.foreign.add_to(args);
    args.common(flags.common);
    return args.parse(arguments);
}

std::string system_prompt(const ChatFlags& flags) {
    if (!flags.system.empty() && !flags.system_file.empty()) throw UsageError("give one of -sys and -sysf, not both");
    return flags.system_file.empty() ? flags.system : read_text(flags.system_file);
}

/// Returns false to leave.
bool take(Chat& chat, const std::string& text) {
    try {
        if (text.starts_with('/')) return chat.command(text) == Chat::Next::Read;
        chat.say(text);
    } catch (const ggmlx::Error& e) {
        if (!stdin_is_terminal()) throw;  // a script should notice
        note(std::string("error: ") + e.what());
    } catch (const UsageError& e) {
        if (!stdin_is_terminal()) throw;
        note(e.what());
    }
    return true;
}

void converse(Chat& chat, const ChatFlags& flags, const Style& style) {
    LineReader lines(history_path());
    MessageReader messages(lines, style.prompt("> "), flags.multiline);
    bool interrupted_before = false;
    while (true) {
        chat.interrupt().clear();
        const LineReader::Line line = messages.read(lines.can_edit() ? chat.take_edit() : "");
        if (line.kind == LineReader::Line::Kind::End) return;
        const bool interrupted = line.kind == LineReader::Line::Kind::Interrupted;
        if (interrupted && interrupted_before) return;
        if (interrupted) note("\nCtrl-C again, or Ctrl-D, leaves");
        interrupted_before = interrupted;
        if (line.text.empty()) continue;
        if (!take(chat, line.text)) return;
        if (flags.single_turn && !line.text.starts_with('/')) return;
    }
}

}  // namespace

int run_chat(std::span<const std::string> arguments) {
    ChatFlags flags;
    if (!parse_chat(arguments, flags)) return 0;
    if (const auto warning = flags.foreign.warning(); !warning.empty()) note(warning);
    const std::string system = system_prompt(flags);
    const llm::Model model(open_model(flags.model));
    const auto format = flags.chat_template.format(model);
    llm::Conversation conversation(model.tokenizer(), format, flags.chat_template.template_variables());
    if (!system.empty()) conversation.set_system(system);
    const ChatSettings settings{generate_options(flags.sampling, model.generation(), false),
                                flags.timings || flags.common.verbose};
    llm::Engine engine = load_engine(model, engine_options(flags.engine), flags.engine, flags.common);
    print_engine(engine, flags.common);
    const Style style(flags.color);
    Chat chat(model, engine, std::move(conversation), settings, flags.chat_template.markers(format.get()), style,
              flags.common.quiet);
    if (!flags.prompt.empty()) {
        chat.say(flags.prompt);
        if (flags.single_turn) return 0;
    }
    const bool greet = !flags.common.quiet && stdin_is_terminal();
    if (greet && !format) note("the model has no chat template: what you type is continued as it stands");
    if (greet) note("/help lists what can be typed; Ctrl-D leaves");
    converse(chat, flags, style);
    return 0;
}

}  // namespace cli
