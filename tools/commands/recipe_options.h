#pragma once
// What convert and quantize have in common on the command line and on the screen: the recipe and the report.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convert/recipe.h"
#include "convert/report.h"
#include "tools/args.h"

namespace cli {

/// Texts of the options; recipe() turns them into types.
struct RecipeOptions {
    std::string type, output_type, embedding_type;
    std::vector<std::string> rules;
    bool strict_type = false;

    void declare(Args& args);
    /// Throws UsageError for a bad rule or an unknown type.
    convert::Recipe recipe() const;
};

/// For people, on stdout: types, fallbacks, requantized tensors; with `errors` a line per tensor.
void print_report(const convert::Report& report, const std::string& output, bool dry_run, bool errors);
nlohmann::ordered_json report_json(const convert::Report& report, const std::string& output, bool dry_run);

/// Notes go to stderr.
void print_notes(const convert::Report& report, const Common& common);

}  // namespace cli
