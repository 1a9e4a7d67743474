#pragma once
// The subcommands of `ggmlx`. Each lives in a file of its name: it parses its arguments, calls src/ or convert/,
// prints.

#include <span>
#include <string>
#include <string_view>

namespace cli {

struct Command {
    std::string_view name;
    std::string_view summary;  ///< one line of `ggmlx --help`
    /// arguments: what follows the command's name. Returns the exit code: 0 done, 1 the work's result is bad (a damaged
    /// file). Throws UsageError (exit code 2) or any other exception (1), which the program prints.
    int (*run)(std::span<const std::string> arguments);
};

/// In the order of `ggmlx --help`.
std::span<const Command> all_commands();

int run_run(std::span<const std::string> arguments);
int run_chat(std::span<const std::string> arguments);
int run_convert(std::span<const std::string> arguments);
int run_quantize(std::span<const std::string> arguments);
int run_inspect(std::span<const std::string> arguments);
int run_verify(std::span<const std::string> arguments);
int run_plan(std::span<const std::string> arguments);
int run_devices(std::span<const std::string> arguments);
int run_tokenize(std::span<const std::string> arguments);
int run_template(std::span<const std::string> arguments);
int run_eval(std::span<const std::string> arguments);
int run_bench(std::span<const std::string> arguments);
int run_perplexity(std::span<const std::string> arguments);

}  // namespace cli
