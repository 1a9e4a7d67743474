#include "tools/bench/kernel_rows.h"

#include <fmt/core.h>

#include "ggmlx/core/dtype.h"
#include "tools/bench/rows.h"
#include "tools/json_text.h"

namespace cli {
namespace {

struct KernelFigures {
    explicit KernelFigures(const KernelRow& row)
        : gbps(row.rate.bytes_per_second / kGiga),
          gops(row.rate.ops_per_second / kGiga),
          percent_of_read(100 * row.rate.bytes_per_second / row.read_rate),
          percent_of_int8(100 * row.rate.ops_per_second / row.int8_rate) {}

    double gbps, gops, percent_of_read, percent_of_int8;
};

std::string kernel_json(const KernelRow& row) {
    const KernelFigures f(row);
    return json_line({{"isa", row.isa},
                      {"type", std::string(ggmlx::name(row.rate.dtype))},
                      {"columns", row.rate.n_columns},
                      {"gbps", f.gbps},
                      {"percent_of_read", f.percent_of_read},
                      {"gops", f.gops},
                      {"percent_of_int8", f.percent_of_int8}});
}

}  // namespace

std::string kernel_head(std::string_view format) {
    if (format == "json") return "[";
    if (format == "csv") return "isa,type,columns,gbps,percent_of_read,gops,percent_of_int8\n";
    if (format == "md")
        return fmt::format(
            "| {:<8} | {:<5} | {:>7} | {:>7} | {:>8} | {:>8} | {:>8} "
            "|\n|{:-<10}|{:-<7}|{:->8}:|{:->8}:|{:->9}:|{:->9}:|{:->9}:|\n",
            "isa", "type", "columns", "GB/s", "of read", "GOP/s", "of int8", "", "", "", "", "", "", "");
    return "";
}

std::string kernel_row(std::string_view format, const KernelRow& row, bool first) {
    if (format == "json") return (first ? "\n" : ",\n") + kernel_json(row);
    if (format == "jsonl") return kernel_json(row) + "\n";
    const KernelFigures f(row);
    const std::string_view type = ggmlx::name(row.rate.dtype);
    if (format == "csv")
        return fmt::format("{},{},{},{:.3f},{:.2f},{:.3f},{:.2f}\n", row.isa, type, row.rate.n_columns, f.gbps,
                           f.percent_of_read, f.gops, f.percent_of_int8);
    return fmt::format("| {:<8} | {:<5} | {:>7} | {:>7.1f} | {:>7.1f}% | {:>8.1f} | {:>7.1f}% |\n", row.isa, type,
                       row.rate.n_columns, f.gbps, f.percent_of_read, f.gops, f.percent_of_int8);
}

}  // namespace cli
