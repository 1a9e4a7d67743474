#include "tools/bench/rows.h"

#include <fmt/core.h>

#include "tools/json_text.h"

namespace cli {
namespace {

std::string json_row(const BenchRow& row) {
    const llm::BenchResult& r = row.result;
    const double limit = row.limit();
    nlohmann::ordered_json json = {{"test", r.what.name()},
                                   {"n_prompt", r.what.n_prompt},
                                   {"n_gen", r.what.n_gen},
                                   {"depth", r.what.depth},
                                   {"tokens_per_second", r.tokens_per_second},
                                   {"stddev", r.stddev},
                                   {"bytes_per_token", nullptr},
                                   {"ram_read_gbps", row.read_rate / kGiga},
                                   {"limit_tokens_per_second", nullptr},
                                   {"percent_of_limit", nullptr}};
    if (limit > 0) {
        json["bytes_per_token"] = r.bytes_per_token;
        json["limit_tokens_per_second"] = limit;
        json["percent_of_limit"] = 100 * r.tokens_per_second / limit;
    }
    return json_line(json);
}

std::string csv_row(const BenchRow& row) {
    const llm::BenchResult& r = row.result;
    std::string limits = ",,";
    if (const double limit = row.limit(); limit > 0)
        limits = fmt::format("{:.0f},{:.4f},{:.2f}", r.bytes_per_token, limit, 100 * r.tokens_per_second / limit);
    return fmt::format("{},{},{},{},{:.4f},{:.4f},{:.3f},{}\n", r.what.name(), r.what.n_prompt, r.what.n_gen,
                       r.what.depth, r.tokens_per_second, r.stddev, row.read_rate / kGiga, limits);
}

std::string md_row(const BenchRow& row) {
    const llm::BenchResult& r = row.result;
    std::string limits = fmt::format("{:>10} | {:>10} | {:>6}", "", "", "");
    if (const double limit = row.limit(); limit > 0)
        limits = fmt::format("{:>10.3f} | {:>10.2f} | {:>5.1f}%", r.bytes_per_token / kGiga, limit,
                             100 * r.tokens_per_second / limit);
    return fmt::format("| {:<18} | {:>16} | {} |\n", r.what.name(),
                       fmt::format("{:.2f} ± {:.2f}", r.tokens_per_second, r.stddev), limits);
}

}  // namespace

double BenchRow::limit() const { return result.limit_tokens_per_second; }

std::string bench_head(std::string_view format) {
    if (format == "json") return "[";
    if (format == "csv")
        return "test,n_prompt,n_gen,depth,tokens_per_second,stddev,ram_read_gbps,bytes_per_token,"
               "limit_tokens_per_second,percent_of_limit\n";
    if (format == "md")
        return fmt::format(
            "| {:<18} | {:>16} | {:>10} | {:>10} | {:>6} |\n|{:-<20}|{:->17}:|{:->11}:|{:->11}:|{:->7}:|\n", "test",
            "tokens/s", "GB/token", "limit", "of it", "", "", "", "", "");
    return "";
}

std::string bench_row(std::string_view format, const BenchRow& row, bool first) {
    if (format == "json") return (first ? "\n" : ",\n") + json_row(row);
    if (format == "jsonl") return json_row(row) + "\n";
    return format == "csv" ? csv_row(row) : md_row(row);
}

std::string bench_foot(std::string_view format) { return format == "json" ? "\n]\n" : ""; }

}  // namespace cli
