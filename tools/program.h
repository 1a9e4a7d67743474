#pragma once
// The program as a function: picks the subcommand and turns exceptions into messages and exit codes.

#include <span>
#include <string>

namespace cli {

/// arguments: without the program's name. Returns the exit code: 0 done, 1 the work failed, 2 the command line was
/// wrong. Errors go to stderr as one line `error: …`. Throws nothing.
int run_program(std::span<const std::string> arguments) noexcept;

}  // namespace cli
