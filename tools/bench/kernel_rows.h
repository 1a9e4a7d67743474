#pragma once
// The rows that `ggmlx bench --kernels` prints.

#include <string>
#include <string_view>

#include "ggmlx/backend/cpu/kernel_rates.h"

namespace cli {

/// A rate beside what bounds it.
struct KernelRow {
    std::string isa;
    ggmlx::KernelRate rate;
    double read_rate = 0;  ///< bytes a second of a plain read
    double int8_rate = 0;  ///< operations a second in registers
};

/// In the formats of rows.h; bench_foot() ends them.
std::string kernel_head(std::string_view format);
std::string kernel_row(std::string_view format, const KernelRow& row, bool first);

}  // namespace cli
