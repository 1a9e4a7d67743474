// ggmlx perplexity: how well a model predicts a text.

#include <fmt/core.h>

#include <algorithm>

#include "src/session/perplexity.h"
#include "tools/commands/commands.h"
#include "tools/engine_flags.h"
#include "tools/json_text.h"
#include "tools/model_path.h"
#include "tools/text_input.h"

namespace cli {
namespace {

constexpr int64_t kDefaultWindow = 512;

struct PerplexityFlags {
    std::string model, file, ids_file;
    bool bos = false;
    EngineFlags engine;
    Common common;
};

bool parse_perplexity(std::span<const std::string> arguments, PerplexityFlags& flags) {
    Args args(
        "perplexity",
        "Measures how well a model predicts a text, in windows of -c tokens (default: 512, or the model's context "
        "if that is smaller). Every window starts empty and every token it predicts counts, the last one being "
        "the first of the next window; a shorter last window is left out. With --bos each window reads BOS and "
        "-c - 1 tokens of the text, and predicts -c tokens.",
        "  ggmlx perplexity model.ggmx -f text.txt\n"
        "  ggmlx perplexity model.ggmx --ids ids.safetensors -c 1024 --json\n");
    args.model(flags.model);
    args.option("-f,--file", flags.file, "FILE", "the text; \"-\" reads standard input");
    args.option("--ids", flags.ids_file, "FILE",
                "token ids instead: a JSON array, or the I32 tensor `ids` of a .safetensors");
    args.flag("--bos", flags.bos, "put the model's BOS token in front of each window");
    add_engine_flags(args, flags.engine);
    args.common(flags.common);
    return args.parse(arguments);
}

std::vector<llm::TokenId> text_ids(const PerplexityFlags& flags, const llm::Model& model) {
    if (flags.file.empty() == flags.ids_file.empty()) throw UsageError("give a text with -f, or token ids with --ids");
    if (!flags.ids_file.empty()) return read_ids(flags.ids_file);
    return model.tokenizer().encode(read_text(flags.file), {.add_special = false, .parse_special = false});
}

void print_result(const PerplexityFlags& flags, const llm::Perplexity& p) {
    if (flags.common.json) {
        fmt::print("{}\n", json_line({{"nll", p.nll},
                                      {"perplexity", p.perplexity},
                                      {"standard_error", p.standard_error},
                                      {"tokens", p.n_tokens},
                                      {"windows", p.n_windows}}));
        return;
    }
    fmt::print("nll         {:.6f} +- {:.6f}\n", p.nll, p.standard_error);
    fmt::print("perplexity  {:.4f} +- {:.4f}\n", p.perplexity, p.perplexity * p.standard_error);
    fmt::print("tokens      {} in {} windows\n", p.n_tokens, p.n_windows);
}

}  // namespace

int run_perplexity(std::span<const std::string> arguments) {
    PerplexityFlags flags;
    if (!parse_perplexity(arguments, flags)) return 0;
    const llm::Model model(open_model(flags.model));
    const auto ids = text_ids(flags, model);

    llm::EngineOptions options = engine_options(flags.engine);
    if (options.n_ctx == 0) options.n_ctx = std::min(kDefaultWindow, model.config().n_ctx_train);
    llm::PerplexityOptions what;
    what.window = options.n_ctx;
    if (flags.bos) what.bos = model.generation().bos_id;
    ggmlx::require(!flags.bos || what.bos.has_value(), ggmlx::ErrorKind::InvalidArgument,
                   "--bos: the model names no BOS token");
    options.max_batch = std::min(options.max_batch, options.n_ctx);
    options.max_outputs = options.max_batch;
    llm::Engine engine = load_engine(model, options, flags.engine, flags.common);
    print_engine(engine, flags.common);
    const auto on_window = [&](int64_t done, int64_t total) {
        if (flags.common.verbose) note(fmt::format("window {} of {}", done, total));
    };
    print_result(flags, llm::perplexity(engine, ids, what, on_window));
    return 0;
}

}  // namespace cli
