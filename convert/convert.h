#pragma once
// Hugging Face checkpoint -> .ggmx: checks everything that can be checked first, then streams tensor after tensor.

#include <string>
#include <vector>

#include "convert/recipe.h"
#include "convert/report.h"

namespace convert {

struct ConvertOptions {
    std::string input;              ///< a checkpoint folder or one .safetensors file
    std::string output;             ///< may be empty with dry_run
    Recipe recipe;                  ///< without a type the checkpoint's own: f32, f16 or bf16; bf16 for FP8 weights
    std::vector<std::string> skip;  ///< patterns of unknown checkpoint tensors to leave out
    bool compress = false;
    bool measure_errors = false;
    bool dry_run = false;  ///< check and report, write nothing
    int n_threads = 0;     ///< 0: all usable
    std::string tool_version;
};

/// Errors as ggmlx::Error, in this order: checkpoint, config.json, tensors, tokenizer, recipe; then io while writing
/// and corrupt_file for a value that is not finite. Anonymous memory stays below twice the largest source tensor plus a
/// constant.
Report convert(const ConvertOptions& options, const ProgressSink& progress = {});

}  // namespace convert
