#include "tools/commands/commands.h"

namespace cli {
namespace {

constexpr Command kCommands[] = {
    {"convert", "make a .ggmx model from a Hugging Face checkpoint", run_convert},
    {"quantize", "make a smaller .ggmx from a .ggmx", run_quantize},
    {"inspect", "show what is in a model", run_inspect},
    {"verify", "check every byte of a model against its checksums", run_verify},
};

}  // namespace

std::span<const Command> all_commands() { return kCommands; }

}  // namespace cli
