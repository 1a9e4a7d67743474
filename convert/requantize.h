#pragma once
// .ggmx -> .ggmx with other types: `ggmlx quantize`. Tensors that keep their type are copied bit by bit.

#include <string>

#include "convert/recipe.h"
#include "convert/report.h"

namespace convert {

struct RequantizeOptions {
    std::string input, output;  ///< output may be empty with dry_run
    Recipe recipe;              ///< without a type tensors keep theirs
    bool allow_requantize = false;
    bool compress = false;
    bool measure_errors = false;  ///< deviations from the values in the input
    bool dry_run = false;
    int n_threads = 0;
    std::string tool_version;
};

/// Throws as ModelFile::open, choose_types and write_model do; and invalid_argument, listing the tensors, before
/// anything is written, if a block type would become another type with loss and allow_requantize is not set. To f32
/// nothing is lost.
Report requantize(const RequantizeOptions& options, const ProgressSink& progress = {});

/// Throws invalid_argument if the report has requantized tensors, listing them.
void require_no_requantizing(const Report& report);

}  // namespace convert
