// ggmlx run: continues one prompt. Text goes to stdout as it comes, notes and timings to stderr.

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

#include "src/session/generate.h"
#include "tools/commands/commands.h"
#include "tools/engine_flags.h"
#include "tools/interrupt.h"
#include "tools/json_text.h"
#include "tools/model_path.h"
#include "tools/sampling_flags.h"
#include "tools/text_input.h"

namespace cli {
namespace {

struct RunFlags {
    std::string model;
    EngineFlags engine;
    PromptFlags prompt;
    SamplingFlags sampling;
    ForeignFlags foreign;
    Common common;
};

bool parse_run(std::span<const std::string> arguments, RunFlags& flags) {
    Args args("run", "Continues a prompt. The text goes to standard output, notes and timings to standard error.",
              "  ggmlx run model.ggmx -p \"Once upon a time\"\n"
              "  ggmlx run model.ggmx -f question.txt -n 200 --temp 0\n"
              "  echo \"Once upon\" | ggmlx run model.ggmx --json | jq .text\n");
    args.model(flags.model);
    flags.prompt.add_to(args);
    add_sampling_flags(args, flags.sampling);
    add_engine_flags(args, flags.engine);
    flags.foreign.add_to(args);
    args.common(flags.common);
    return args.parse(arguments);
}

void print_json(std::span<const llm::TokenId> prompt, const llm::Generated& result) {
    const nlohmann::ordered_json json = {{"prompt_ids", prompt},
                                         {"ids", result.ids},
                                         {"text", result.text},
                                         {"stop_reason", result.stop_reason},
                                         {"timings", to_json(result.timings)}};
    fmt::print("{}\n", json_line(json));
}

void print_timings(const llm::Generated& result, int64_t n_ctx) {
    note("");
    note(timing_line(result.timings));
    if (result.stop_reason == "context") note(fmt::format("stopped: the context of {} tokens is full (-c)", n_ctx));
}

}  // namespace

int run_run(std::span<const std::string> arguments) {
    RunFlags flags;
    if (!parse_run(arguments, flags)) return 0;
    if (const auto warning = flags.foreign.warning(); !warning.empty()) note(warning);
    const llm::Model model(open_model(flags.model));
    const auto options = generate_options(flags.sampling, model.generation(), flags.prompt.escape);
    const std::vector<llm::TokenId> prompt = flags.prompt.tokens(model);

    llm::Engine engine = load_engine(model, engine_options(flags.engine), flags.engine, flags.common);
    print_engine(engine, flags.common);
    llm::Session session(engine);
    const Interrupt interrupt;
    const bool stream = !flags.common.json;
    const llm::Generated result = llm::generate(session, prompt, options, [&](std::string_view text) {
        if (stream && !text.empty()) {
            std::fwrite(text.data(), 1, text.size(), stdout);
            std::fflush(stdout);
        }
        return !interrupt.requested() && !std::ferror(stdout);
    });
    if (flags.common.json) {
        print_json(prompt, result);
    } else if (isatty(STDOUT_FILENO)) {
        fmt::print("\n");
    }
    if (stream && !flags.common.quiet) print_timings(result, engine.n_ctx());
    return 0;
}

}  // namespace cli
