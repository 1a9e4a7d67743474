#pragma once
// The rows that `ggmlx bench` prints.

#include <string>
#include <string_view>
#include <vector>

#include "src/session/benchmark.h"

namespace cli {

struct BenchRow {
    llm::BenchResult result;
    double read_rate = 0;  ///< bytes a second, measured in the same process

    /// Tokens a second if memory were all that counts; 0 where it is not (with a prompt).
    double limit() const;
};

inline constexpr double kGiga = 1e9;
inline constexpr std::string_view kBenchFormats[] = {"md", "csv", "json", "jsonl"};

/// What comes before the rows, for each row, and after them; rows are printed as they are measured.
std::string bench_head(std::string_view format);
std::string bench_row(std::string_view format, const BenchRow& row, bool first);
std::string bench_foot(std::string_view format);

}  // namespace cli
