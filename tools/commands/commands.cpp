#include "tools/commands/commands.h"

namespace cli {
namespace {

constexpr Command kCommands[] = {
    {"run", "continue a prompt", run_run},
    {"chat", "talk to a model in the terminal", run_chat},
    {"convert", "make a .ggmx model from a Hugging Face checkpoint", run_convert},
    {"quantize", "make a smaller .ggmx from a .ggmx", run_quantize},
    {"inspect", "show what is in a model", run_inspect},
    {"verify", "check every byte of a model against its checksums", run_verify},
    {"plan", "show where tensors would go and what that costs", run_plan},
    {"devices", "list the devices that placement rules can name", run_devices},
    {"tokenize", "show the tokens of a text", run_tokenize},
    {"template", "show the prompt that a conversation becomes", run_template},
    {"eval", "logits and intermediate values of a prompt", run_eval},
    {"bench", "measure tokens per second against the limit of the memory", run_bench},
    {"perplexity", "measure how well a model predicts a text", run_perplexity},
};

}  // namespace

std::span<const Command> all_commands() { return kCommands; }

}  // namespace cli
