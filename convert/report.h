#pragma once
// What convert and quantize did, or with dry_run would do: data for the commands to print.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convert/type_totals.h"

namespace convert {

/// Called often with bytes done and in all, from one thread at a time.
using ProgressSink = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

struct TensorReport {
    std::string name;
    std::string from;  ///< what it was stored as, in the source's own word: "bf16", "f8_e4m3", "q5_k"
    ggmlx::DType wanted = ggmlx::DType::F32, dtype = ggmlx::DType::F32;
    bool requantized = false;                             ///< lossy, from a type that had lost something already
    double rmse = 0, max_error = 0, bits_per_weight = 0;  ///< with measure_errors; against the source's values
};

struct Report {
    std::vector<TensorReport> tensors;
    TypeSummary summary;
    uint64_t file_bytes = 0;         ///< of the result; with compress and dry_run an upper bound
    std::string source_dtype;        ///< the type that most of the source's values have
    std::vector<std::string> notes;  ///< lines that a person should read
};

}  // namespace convert
