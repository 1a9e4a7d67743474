// ggmlx convert: a Hugging Face checkpoint folder or a GGUF file -> one .ggmx file.

#include "convert/convert.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ggmlx/core/error.h"
#include "ggmlx/file/reader.h"
#include "src/tokenizer/tokenizer.h"
#include "tools/commands/commands.h"
#include "tools/commands/recipe_options.h"
#include "tools/model_path.h"
#include "tools/progress.h"

namespace cli {
namespace {

void require_checkpoint(const std::string& path) {
    using ggmlx::ErrorKind;
    ggmlx::require(
        !is_model_file(path), ErrorKind::InvalidArgument,
        "{} is a .ggmx model already; to store it in another type: ggmlx quantize {} -o OUT.ggmx --type TYPE", path,
        path);
}

/// The tokenizer travels whole, so a later version may understand what this one does not: a warning, not an error.
void check_tokenizer(const std::string& model, convert::Report& report) {
    const auto file = ggmlx::ModelFile::open(model);
    if (!file.has_document("tokenizer.json")) return;
    const std::string config =
        file.has_document("tokenizer_config.json") ? file.document("tokenizer_config.json") : std::string();
    try {
        (void)llm::Tokenizer::from_json(file.document("tokenizer.json"), config);
    } catch (const ggmlx::Error& error) {
        report.notes.push_back(fmt::format("warning: this version cannot use the tokenizer: {}", error.what()));
    }
}

}  // namespace

int run_convert(std::span<const std::string> arguments) {
    convert::ConvertOptions options;
    options.tool_version = GGMLX_VERSION;
    RecipeOptions recipe;
    Common common;
    int64_t n_threads = 0;
    Args args(
        "convert",
        "Makes a .ggmx model from a Hugging Face checkpoint (a folder with config.json, tokenizer files and "
        ".safetensors weights) or from a GGUF file. Everything is checked before a byte is written; the file "
        "appears under its name only when it is complete.",
        "  ggmlx convert ./Qwen3-0.6B -o qwen3.ggmx                       keep the checkpoint's precision\n"
        "  ggmlx convert ./Llama-3.1-8B -o llama.ggmx --type q4_k \\\n"
        "      --tensor-type 'attn_v|ffn_down=q6_k' --output-tensor-type q8_0\n"
        "  ggmlx convert ./Qwen3-0.6B --type q8_0 --dry-run               only say how large it would be\n"
        "  ggmlx convert SmolLM2-135M-Instruct.Q4_1.gguf -o smol.ggmx     every tensor keeps its type and values\n");
    args.model(options.input, "the checkpoint: a folder, one .safetensors file in it, or a .gguf file");
    args.option("-o,--output", options.output, "FILE", "the model to write");
    recipe.declare(args);
    args.option("--skip", options.skip, "REGEX",
                "leave out checkpoint tensors that this version does not know; repeatable");
    args.flag("--allow-requantize", options.allow_requantize,
              "GGUF: let tensors that are quantized already become another block type");
    args.flag("--compress", options.compress, "store tensors as zstd frames: smaller to ship, slower to load");
    args.flag("--report", options.measure_errors, "measure what the types cost: a line per tensor");
    args.flag("--dry-run", options.dry_run, "check everything and print the sizes, write nothing");
    args.option("-t,--threads", n_threads, {0, 4096}, "threads (0: all processors)");
    args.common(common);
    if (!args.parse(arguments)) return 0;
    if (options.output.empty() && !options.dry_run) throw UsageError("no output is given: add -o MODEL.ggmx");
    options.recipe = recipe.recipe();
    options.n_threads = static_cast<int>(n_threads);
    require_checkpoint(options.input);

    convert::Report report;
    {
        Progress progress("convert", !common.quiet);
        report = convert::convert(options, [&](uint64_t done, uint64_t total) { progress.update(done, total); });
    }
    if (!options.dry_run) check_tokenizer(options.output, report);
    print_notes(report, common);
    if (common.json)
        fmt::print("{}\n", report_json(report, options.output, options.dry_run).dump(2));
    else
        print_report(report, options.output, options.dry_run, options.measure_errors && !options.dry_run);
    return 0;
}

}  // namespace cli
