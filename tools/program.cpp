#include "tools/program.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <system_error>
#include <vector>

#include "ggmlx/core/suggest.h"
#include "tools/args.h"
#include "tools/commands/commands.h"

namespace cli {
namespace {

void print_overview(std::FILE* out) {
    fmt::print(out,
               "ggmlx runs large language models, with experts in system memory beside the GPU.\n\n"
               "Usage: ggmlx COMMAND [ARGUMENTS]\n\nCommands:\n");
    for (const Command& command : all_commands()) fmt::print(out, "  {:<11} {}\n", command.name, command.summary);
    fmt::print(
        out,
        "\nA first walk, from a checkpoint folder as Hugging Face has it:\n"
        "  ggmlx convert ./Qwen3-0.6B -o qwen3.ggmx --type q8_0\n"
        "  ggmlx inspect qwen3.ggmx\n"
        "\n`ggmlx COMMAND --help` explains a command. Exit codes: 0 done, 1 the work failed, 2 the command line was "
        "wrong.\n");
}

bool is_command(const std::string& name) {
    const auto all = all_commands();
    return std::any_of(all.begin(), all.end(), [&](const Command& command) { return command.name == name; });
}

const Command& find_command(const std::string& name) {
    std::vector<std::string> names;
    for (const Command& command : all_commands()) {
        if (command.name == name) return command;
        names.emplace_back(command.name);
    }
    throw UsageError(fmt::format("there is no command \"{}\"{}", name, ggmlx::did_you_mean(name, names)));
}

int dispatch(std::span<const std::string> arguments) {
    if (arguments.empty()) {
        print_overview(stderr);
        return 2;
    }
    if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
        if (arguments.size() == 1) {
            print_overview(stdout);
            return 0;
        }
        return find_command(arguments[1]).run(std::vector<std::string>{"--help"});
    }
    if (arguments[0] == "--version") {
        fmt::print("ggmlx {}\n", GGMLX_VERSION);
        return 0;
    }
    return find_command(arguments[0]).run(arguments.subspan(1));
}

/// Writes what is buffered; a full disk or a closed pipe shows only here.
void flush_stdout() {
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
        throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(), "cannot write to standard output");
}

void report(std::string_view message) noexcept {
    std::fflush(stdout);
    std::fprintf(stderr, "error: %.*s\n", static_cast<int>(message.size()), message.data());
}

}  // namespace

int run_program(std::span<const std::string> arguments) noexcept {
    try {
        const int code = dispatch(arguments);
        flush_stdout();
        return code;
    } catch (const UsageError& error) {
        report(error.what());
        const bool known = !arguments.empty() && is_command(arguments[0]);
        std::fprintf(stderr, "see: ggmlx %s%s--help\n", known ? arguments[0].c_str() : "", known ? " " : "");
        return 2;
    } catch (const std::bad_alloc&) {
        report("not enough memory");
    } catch (const std::system_error& error) {
        if (error.code().value() != EPIPE) report(error.what());  // the reader of our pipe left: nobody to tell
    } catch (const std::exception& error) {
        report(error.what());
    }
    return 1;
}

}  // namespace cli
