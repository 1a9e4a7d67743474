#pragma once
// Hugging Face checkpoint or GGUF file -> .ggmx: checks everything that can be checked first, then streams tensor after
// tensor.

#include <string>
#include <vector>

#include "convert/recipe.h"
#include "convert/report.h"

namespace convert {

struct ConvertOptions {
    std::string input;              ///< a checkpoint folder, one .safetensors file or a GGUF file
    std::string output;             ///< may be empty with dry_run
    Recipe recipe;                  ///< without a type each tensor's own, or the nearest; bf16 for FP8 weights
    std::vector<std::string> skip;  ///< patterns of unknown checkpoint tensors to leave out
    bool allow_requantize = false;  ///< tensors of a GGUF file that are quantized may become another block type
    bool compress = false;
    bool measure_errors = false;
    bool dry_run = false;  ///< check and report, write nothing
    int n_threads = 0;     ///< 0: all usable
    std::string tool_version;
};

/// Errors as ggmlx::Error, in this order: checkpoint, config.json, tensors, tokenizer, recipe (invalid_argument,
/// listing the tensors, where something would be quantized a second time without leave); then io while writing and
/// corrupt_file for a value that is not finite. Anonymous memory stays below twice the largest source tensor plus a
/// constant.
Report convert(const ConvertOptions& options, const ProgressSink& progress = {});

}  // namespace convert
