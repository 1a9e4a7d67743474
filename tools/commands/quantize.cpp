// ggmlx quantize: a .ggmx file -> another with smaller types.

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "convert/requantize.h"
#include "tools/commands/commands.h"
#include "tools/commands/recipe_options.h"
#include "tools/model_path.h"
#include "tools/progress.h"

namespace cli {
namespace {

/// The positional form IN OUT TYPE beside -o and --type; each may be given once.
void take_positional(std::string& option, const std::string& positional, std::string_view names) {
    if (positional.empty()) return;
    if (!option.empty())
        throw UsageError(fmt::format("\"{}\" and {} {} say the same thing twice", positional, names, option));
    option = positional;
}

}  // namespace

int run_quantize(std::span<const std::string> arguments) {
    convert::RequantizeOptions options;
    options.tool_version = GGMLX_VERSION;
    RecipeOptions recipe;
    Common common;
    std::string output, type;
    int64_t n_threads = 0;
    Args args("quantize",
              "Stores a model in other types. Tensors that keep their type are copied bit by bit. What is quantized "
              "already loses a second time, so that needs --allow-requantize.",
              "  ggmlx quantize model-bf16.ggmx model-q4.ggmx q4_k\n"
              "  ggmlx quantize model-bf16.ggmx -o model-q8.ggmx --type q8_0 --report\n");
    args.model(options.input);
    args.positional("OUT", output, "the model to write (or -o)");
    args.positional("TYPE", type, "type of the matrices (or --type)");
    args.option("-o,--output", options.output, "FILE", "the model to write");
    recipe.declare(args);
    args.flag("--allow-requantize", options.allow_requantize, "quantize tensors again that are quantized already");
    args.flag("--compress", options.compress, "store tensors as zstd frames: smaller to ship, slower to load");
    args.flag("--report", options.measure_errors, "measure what the types cost: a line per tensor");
    args.flag("--dry-run", options.dry_run, "check everything and print the sizes, write nothing");
    args.option("-t,--threads", n_threads, {0, 4096}, "threads (0: all processors)");
    args.common(common);
    if (!args.parse(arguments)) return 0;
    take_positional(options.output, output, "-o");
    take_positional(recipe.type, type, "--type");
    if (options.output.empty() && !options.dry_run) throw UsageError("no output is given: add -o MODEL.ggmx");
    if (recipe.type.empty() && recipe.rules.empty() && recipe.output_type.empty() && recipe.embedding_type.empty())
        throw UsageError("no type is given: add --type, such as --type q8_0");
    options.recipe = recipe.recipe();
    options.n_threads = static_cast<int>(n_threads);
    (void)open_model(options.input);  // a clear word if it is a folder

    convert::Report report;
    {
        Progress progress("quantize", !common.quiet);
        report = convert::requantize(options, [&](uint64_t done, uint64_t total) { progress.update(done, total); });
    }
    print_notes(report, common);
    if (common.json)
        fmt::print("{}\n", report_json(report, options.output, options.dry_run).dump(2));
    else
        print_report(report, options.output, options.dry_run, options.measure_errors && !options.dry_run);
    return 0;
}

}  // namespace cli
