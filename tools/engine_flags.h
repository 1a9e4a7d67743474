#pragma once
// Flags of every command that runs or plans a model: context, threads, batch, placement, cache types.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/planner/fit.h"
#include "src/session/engine.h"
#include "tools/args.h"

namespace cli {

/// The flags' values as written; declare with add_engine_flags, then read with engine_options.
struct EngineFlags {
    int64_t n_ctx = 0;
    int64_t n_threads = 0;
    int64_t batch = 2048;
    int64_t ubatch = 512;
    std::string isa;
    std::vector<std::string> rules;
    std::string cache_k, cache_v;
    bool mmap = false, no_mmap = false, mlock = false, no_pin = false, fast_bf16 = false;
    std::string numa = "off";
    std::optional<int64_t> n_gpu_layers;
    std::optional<uint64_t> vram;
    int64_t n_cpu_moe = 0;
    bool cpu_moe = false;
    std::string fit = "on";
};
void add_engine_flags(Args& args, EngineFlags& flags);
/// Throws UsageError for an unknown cache type and for --mmap with --no-mmap; ggmlx::parse_rules' errors for rules.
llm::EngineOptions engine_options(const EngineFlags& flags);

/// Adds the planner's rules behind the user's.
void add_planned_rules(llm::EngineOptions& options, const llm::ModelConfig& config, const llm::Architecture& arch,
                       const ggmlx::TensorSet& weights, std::span<const std::unique_ptr<ggmlx::Backend>> devices,
                       const EngineFlags& flags);

/// Makes the devices, lets the planner add its rules, and loads a model, with a progress line for people.
llm::Engine load_engine(const llm::Model& model, llm::EngineOptions options, const EngineFlags& flags,
                        const Common& common);
/// On stderr: one line about processor, threads and memory, one about the kernels that multiply the weights, notes of
/// the plan; with -v also what every device holds.
void print_engine(const llm::Engine& engine, const Common& common);

/// Flags that llama.cpp has and that mean nothing here: accepted, so that command lines can be carried over.
class ForeignFlags {
  public:
    void add_to(Args& args);
    /// One line that names those that were given; empty if none were.
    std::string warning() const;

  private:
    struct Flag {
        const char* names;
        bool takes_value;
        bool given = false;
    };
    std::vector<Flag> flags_{{"--no-warmup", false},     {"--swa-full", false},          {"--jinja", false},
                             {"-nr,--no-repack", false}, {"-cb,--cont-batching", false}, {"-sm,--split-mode", true},
                             {"-fa,--flash-attn", true}};
};

/// Prints a note to stderr.
void note(const std::string& text);

}  // namespace cli
