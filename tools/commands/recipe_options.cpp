#include "tools/commands/recipe_options.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "ggmlx/core/error.h"
#include "tools/type_table.h"

namespace cli {
namespace {

using nlohmann::ordered_json;

std::optional<ggmlx::DType> optional_type(const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(convert::parse_weight_type(text));
}

void print_fallbacks(const convert::Report& report) {
    std::map<std::pair<std::string_view, std::string_view>, int64_t> counts;
    for (const auto& t : report.tensors)
        if (t.wanted != t.dtype) ++counts[{ggmlx::name(t.wanted), ggmlx::name(t.dtype)}];
    for (const auto& [types, count] : counts)
        fmt::print("{} tensors became {} instead of {}: their rows are no multiple of the block\n", count, types.second,
                   types.first);
}

void print_errors(const convert::Report& report) {
    fmt::print("\n{:<34} {:>6} {:>6} {:>11} {:>12} {:>12}\n", "tensor", "from", "to", "bits/value", "rmse",
               "max error");
    for (const auto& t : report.tensors)
        fmt::print("{:<34} {:>6} {:>6} {:>11.2f} {:>12.4e} {:>12.4e}\n", t.name, t.from, ggmlx::name(t.dtype),
                   t.bits_per_weight, t.rmse, t.max_error);
}

}  // namespace

void RecipeOptions::declare(Args& args) {
    args.option(
        "--type", type, "TYPE",
        "type of the matrices: f32, f16, bf16, q8_0, q6_k, q4_k, q4_1, q4_0, mxfp8, mxfp4; without it they keep "
        "their own");
    args.option("--tensor-type", rules, "REGEX=TYPE",
                "another type for tensors whose name matches; repeatable, the first rule that matches wins");
    args.option("--output-tensor-type", output_type, "TYPE", "type of output.weight, the head");
    args.option("--token-embedding-type", embedding_type, "TYPE", "type of token_embd.weight");
    args.flag("--strict-type", strict_type,
              "refuse instead of choosing the next larger type where a row's length does not suit the blocks");
}

convert::Recipe RecipeOptions::recipe() const try {
    convert::Recipe recipe;
    recipe.type = optional_type(type);
    recipe.output_type = optional_type(output_type);
    recipe.embedding_type = optional_type(embedding_type);
    for (const std::string& rule : rules) recipe.rules.push_back(convert::parse_type_rule(rule));
    recipe.strict_type = strict_type;
    return recipe;
} catch (const ggmlx::Error& error) {
    throw UsageError(error.what());
}

void print_report(const convert::Report& report, const std::string& output, bool dry_run, bool errors) {
    fmt::print("{}", type_table(report.summary));
    print_fallbacks(report);
    for (const auto& t : report.tensors)
        if (t.requantized) fmt::print("quantized a second time: {} ({} -> {})\n", t.name, t.from, ggmlx::name(t.dtype));
    if (errors) print_errors(report);
    fmt::print("{} {} tensors, {}{}\n", dry_run ? "would write" : "wrote", report.tensors.size(),
               human_bytes(report.file_bytes), output.empty() ? "" : ": " + output);
}

ordered_json report_json(const convert::Report& report, const std::string& output, bool dry_run) {
    ordered_json result = {{"output", output},
                           {"written", !dry_run},
                           {"bytes", report.file_bytes},
                           {"source_dtype", report.source_dtype},
                           {"types", type_table_json(report.summary)},
                           {"notes", report.notes}};
    result["tensors"] = ordered_json::array();
    for (const auto& t : report.tensors)
        result["tensors"].push_back({{"name", t.name},
                                     {"from", t.from},
                                     {"wanted", ggmlx::name(t.wanted)},
                                     {"type", ggmlx::name(t.dtype)},
                                     {"requantized", t.requantized},
                                     {"bits_per_value", t.bits_per_weight},
                                     {"rmse", t.rmse},
                                     {"max_error", t.max_error}});
    return result;
}

void print_notes(const convert::Report& report, const Common& common) {
    if (common.quiet) return;
    for (const std::string& note : report.notes) fmt::print(stderr, "{}\n", note);
}

}  // namespace cli
