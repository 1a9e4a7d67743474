#include "tools/type_table.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "tools/args.h"

namespace cli {

std::string type_table(const convert::TypeSummary& summary) {
    const auto total = summary.total();
    std::string text =
        fmt::format("{:<8} {:>8} {:>12} {:>8} {:>14}\n", "type", "tensors", "size", "percent", "bits/value");
    auto line = [&](std::string_view name, const convert::TypeTotals& row) {
        text +=
            fmt::format("{:<8} {:>8} {:>12} {:>7.1f}% {:>14.2f}\n", name, row.n_tensors, human_bytes(row.size_bytes),
                        100.0 * static_cast<double>(row.size_bytes) / static_cast<double>(total.size_bytes),
                        8.0 * static_cast<double>(row.size_bytes) / static_cast<double>(row.n_values));
    };
    for (const auto& row : summary.rows()) line(ggmlx::name(row.dtype), row);
    line("all", total);
    return text;
}

nlohmann::ordered_json type_table_json(const convert::TypeSummary& summary) {
    auto rows = nlohmann::ordered_json::array();
    for (const auto& row : summary.rows())
        rows.push_back({{"type", ggmlx::name(row.dtype)},
                        {"tensors", row.n_tensors},
                        {"values", row.n_values},
                        {"bytes", row.size_bytes}});
    return rows;
}

std::string with_thousands(int64_t n) {
    std::string digits = std::to_string(n);
    for (auto i = static_cast<int64_t>(digits.size()) - 3; i > (n < 0 ? 1 : 0); i -= 3)
        digits.insert(static_cast<size_t>(i), 1, ',');
    return digits;
}

}  // namespace cli
