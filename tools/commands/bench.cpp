// ggmlx bench: tokens per second of a model, or of a shape with random weights, beside the limit of this machine's
// memory.

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "ggmlx/core/error.h"
#include "tools/bench/kernel_rows.h"
#include "tools/bench/rows.h"
#include "tools/commands/commands.h"
#include "tools/engine_flags.h"
#include "tools/model_path.h"
#include "tools/text_input.h"

namespace cli {
namespace {

struct BenchFlags {
    std::string model, shape, type, format = "md";
    std::vector<std::string> prompt, gen, both, depth;
    int64_t n_layers = 0, repetitions = 5;
    bool kernels = false;
    EngineFlags engine;
    ForeignFlags foreign;
    Common common;
};

bool parse_bench(std::span<const std::string> arguments, BenchFlags& flags) {
    Args args("bench",
              "Measures tokens per second. -p, -n and -o mean what they mean in llama-bench: prompt tokens, generated "
              "tokens, output format; lists are written 128,512. Each row of generation also shows the bytes a token "
              "reads and what the memory allows at the rate measured in the same run.",
              "  ggmlx bench model.ggmx\n"
              "  ggmlx bench model.ggmx -p 512,2048 -n 128 -d 0,8192\n"
              "  ggmlx bench --shape config.json --type mxfp4 --layers 4\n"
              "  ggmlx bench --kernels --type mxfp4 -p 1,512\n");
    args.positional("MODEL", flags.model, "the model, a .ggmx file");
    args.option("-m,--model", flags.model, "MODEL", "the same");
    args.option("--shape", flags.shape, "config.json", "a model of this shape with random weights, without a file");
    args.option("--type", flags.type, "TYPE", "type of a shape's matrices (q4_0); with --kernels that type alone");
    args.option("--layers", flags.n_layers, {0, 100000}, "only the first N layers of a shape; 0: all (the default)");
    args.flag("--kernels", flags.kernels,
              "the CPU's products by themselves, for every instruction set (or --isa) and type, with 1, 4, 16 and 512 "
              "columns (or -p): GB/s of weights and GOP/s beside a plain read and int8 products in registers");
    args.option("-p,--n-prompt", flags.prompt, "N,…", "prompts of so many tokens (512)");
    args.option("-n,--n-gen", flags.gen, "N,…", "generations of so many tokens (128)");
    args.option("-pg,--prompt-gen", flags.both, "PP,TG", "a prompt and a generation timed together; repeatable");
    args.option("-d,--n-depth", flags.depth, "N,…", "tokens in the context before, not timed (0)");
    args.option("-r,--repetitions", flags.repetitions, {1, 10000}, "timed runs of each test (5)");
    args.choice("-o,--output", flags.format, {std::begin(kBenchFormats), std::end(kBenchFormats)}, "form of the rows");
    add_engine_flags(args, flags.engine);
    flags.foreign.add_to(args);
    args.common(flags.common);
    return args.parse(arguments);
}

std::vector<int64_t> numbers_of(std::string_view flag, const std::vector<std::string>& lists, int64_t otherwise) {
    std::vector<int64_t> numbers;
    for (const std::string& list : lists)
        for (size_t begin = 0; begin <= list.size();) {
            const size_t comma = std::min(list.find(',', begin), list.size());
            int64_t n = 0;
            const auto [end, error] = std::from_chars(list.data() + begin, list.data() + comma, n);
            if (error != std::errc() || end != list.data() + comma || n < 0 || n > INT32_MAX)
                throw UsageError(fmt::format("{}: \"{}\" is no list of numbers such as 128,512", flag, list));
            numbers.push_back(n);
            begin = comma + 1;
        }
    if (lists.empty()) numbers.push_back(otherwise);
    return numbers;
}

std::vector<llm::BenchCase> cases_of(const BenchFlags& flags) {
    const bool only_both = flags.prompt.empty() && flags.gen.empty() && !flags.both.empty();
    std::vector<llm::BenchCase> cases;
    const auto add = [&](int64_t n_prompt, int64_t n_gen, int64_t depth) {
        if (n_prompt + n_gen > 0) cases.push_back({n_prompt, n_gen, depth});
    };
    for (int64_t depth : numbers_of("-d", flags.depth, 0)) {
        if (!only_both) {
            for (int64_t n : numbers_of("-p", flags.prompt, 512)) add(n, 0, depth);
            for (int64_t n : numbers_of("-n", flags.gen, 128)) add(0, n, depth);
        }
        for (const std::string& pair : flags.both) {
            const auto n = numbers_of("-pg", {pair}, 0);
            if (n.size() != 2) throw UsageError(fmt::format("-pg: \"{}\" is no pair such as 512,128", pair));
            add(n[0], n[1], depth);
        }
    }
    if (cases.empty()) throw UsageError("there is nothing to time: -p and -n are 0");
    return cases;
}

/// config.json with the number of layers cut, and whatever is listed per layer.
std::string cut_layers(const std::string& text, int64_t n_layers) {
    auto json = nlohmann::ordered_json::parse(text, nullptr, false);
    if (n_layers == 0 || !json.is_object() || !json.contains("num_hidden_layers")) return text;  // from_json explains
    const auto all = json["num_hidden_layers"];
    ggmlx::require(all.is_number_integer() && n_layers <= all.get<int64_t>(), ggmlx::ErrorKind::InvalidArgument,
                   "--layers {}: the model has {}", n_layers, all.dump());
    json["num_hidden_layers"] = n_layers;
    if (auto types = json.find("layer_types"); types != json.end() && types->is_array())
        while (static_cast<int64_t>(types->size()) > n_layers) types->erase(types->size() - 1);
    return json.dump();
}

ggmlx::DType type_of(const BenchFlags& flags) {
    const auto type = ggmlx::dtype_from_name(flags.type.empty() ? "q4_0" : flags.type);
    if (!type) throw UsageError(fmt::format("--type: \"{}\" is none of {}", flags.type, ggmlx::all_dtype_names()));
    return *type;
}

llm::Model model_of(const BenchFlags& flags) {
    if (flags.shape.empty() == flags.model.empty()) throw UsageError("give a model, or a config.json with --shape");
    if (flags.shape.empty()) return llm::Model(open_model(flags.model));
    return llm::Model(llm::ModelConfig::from_json(cut_layers(read_text(flags.shape), flags.n_layers)), type_of(flags));
}

std::vector<ggmlx::DType> kernel_types(const BenchFlags& flags) {
    using ggmlx::DType;
    if (!flags.type.empty()) return {type_of(flags)};
    return {DType::MXFP4, DType::Q4_0,  DType::Q4_1, DType::Q4_K, DType::Q6_K,
            DType::Q8_0,  DType::MXFP8, DType::BF16, DType::F16,  DType::F32};
}

int bench_kernels(const BenchFlags& flags, const std::string& format) {
    std::vector<int64_t> columns = {1, 4, 16, 512};
    if (!flags.prompt.empty()) columns = numbers_of("-p", flags.prompt, 0);
    if (std::count(columns.begin(), columns.end(), 0)) throw UsageError("-p 0: a product needs columns");
    const llm::DeviceOptions devices = engine_options(flags.engine).devices;
    ggmlx::CpuOptions options;
    options.n_threads = devices.n_threads;
    options.isa = devices.isa;
    options.fast_bf16 = devices.fast_bf16;
    const std::vector<std::string> isas =
        options.isa.empty() ? ggmlx::supported_isas() : std::vector<std::string>{options.isa};
    bool first = true;
    for (const std::string& isa : isas) {
        options.isa = isa;
        ggmlx::KernelRates rates(options);
        KernelRow row{rates.isa(), {}, rates.read_rate(), rates.int8_rate()};
        if (!flags.common.quiet)
            note(fmt::format("{}: memory read at {:.1f} GB/s, int8 in registers at {:.0f} GOP/s", rates.description(),
                             row.read_rate / 1e9, row.int8_rate / 1e9));
        for (const ggmlx::DType type : kernel_types(flags))
            for (const int64_t n : columns) {
                row.rate = rates.rate(type, n);
                if (first) fmt::print("{}", kernel_head(format));
                fmt::print("{}", kernel_row(format, row, std::exchange(first, false)));
                std::fflush(stdout);
            }
    }
    fmt::print("{}", bench_foot(format));
    return 0;
}

/// "memory read at 30.1 GB/s, cuda0 at 4100.0 GB/s"
std::string read_rates_line(const llm::Engine& engine, std::span<const double> rates) {
    std::string line = fmt::format("memory read at {:.1f} GB/s", rates.front() / 1e9);
    const std::vector<llm::DeviceUse> uses = engine.device_use();
    for (size_t d = 1; d < rates.size(); ++d)
        if (rates[d] > 0) line += fmt::format(", {} at {:.1f} GB/s", uses[d].name, rates[d] / 1e9);
    return line;
}

/// A hint where the mapped file is what makes this machine slow, and only there.
void note_slow_mapping(const llm::Engine& engine, double read_rate) {
    constexpr double kWorthSaying = 0.9;
    const double mapped = engine.mapped_read_rate();
    if (mapped > 0 && mapped < kWorthSaying * read_rate)
        note(
            fmt::format("note: weights in the mapped file are read at {:.1f} GB/s only; --no-mmap copies them into "
                        "memory of their own",
                        mapped / 1e9));
}

}  // namespace

int run_bench(std::span<const std::string> arguments) {
    BenchFlags flags;
    if (!parse_bench(arguments, flags)) return 0;
    if (const auto warning = flags.foreign.warning(); !warning.empty()) note(warning);
    const std::string format = flags.common.json ? "json" : flags.format;
    if (flags.kernels) return bench_kernels(flags, format);
    const auto cases = cases_of(flags);
    const llm::Model model = model_of(flags);
    llm::EngineOptions options = engine_options(flags.engine);
    if (options.n_ctx == 0)
        for (const llm::BenchCase& c : cases) options.n_ctx = std::max(options.n_ctx, c.depth + c.n_tokens());
    llm::Engine engine = load_engine(model, options, flags.engine, flags.common);
    print_engine(engine, flags.common);
    const std::vector<double> rates = engine.read_rates();
    const double read_rate = rates.front();
    if (!flags.common.quiet) note(read_rates_line(engine, rates));
    fmt::print("{}", bench_head(format));
    for (size_t i = 0; i < cases.size(); ++i) {
        const BenchRow row{llm::run_bench(engine, cases[i], flags.repetitions, rates), read_rate};
        fmt::print("{}", bench_row(format, row, i == 0));
        std::fflush(stdout);
    }
    fmt::print("{}", bench_foot(format));
    if (!flags.common.quiet) note_slow_mapping(engine, read_rate);
    return 0;
}

}  // namespace cli
