#include "tools/engine_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "ggmlx/backend/cuda/cuda_backend.h"
#include "ggmlx/core/dtype.h"
#include "tools/kernel_line.h"
#include "tools/progress.h"

namespace cli {
namespace {

constexpr IntRange kPositive{1, 1 << 30};

std::optional<ggmlx::DType> cache_type(const char* flag, const std::string& text) {
    if (text.empty()) return std::nullopt;
    const auto dtype = ggmlx::dtype_from_name(text);
    if (!dtype) throw UsageError(fmt::format("{}: \"{}\" is none of {}", flag, text, ggmlx::kCacheTypeNames));
    return dtype;
}

}  // namespace

void add_engine_flags(Args& args, EngineFlags& flags) {
    args.option("-c,--ctx-size", flags.n_ctx, {0, 1 << 30},
                "context in tokens; 0: the model's, at most 32768 (the default)");
    args.option("-t,--threads", flags.n_threads, {0, 4096}, "threads; 0: one per physical core (the default)");
    args.option("-b,--batch-size", flags.batch, kPositive, "tokens handed in at once (2048)");
    args.option("-ub,--ubatch-size", flags.ubatch, kPositive, "most tokens computed in one step (512)");
    args.option("--isa", flags.isa, "NAME",
                "instruction set of the kernels: scalar, avx2, avx_vnni, avx512, amx; also GGMLX_ISA");
    args.flag("--fast-bf16", flags.fast_bf16,
              "products of many columns in bf16 (AVX512-BF16, AMX-BF16): faster prompts, but results depend on the "
              "batch and differ in the last digits; without effect on processors that lack the instructions");
    args.option("-ot,--override-tensor", flags.rules, "RULES",
                "REGEX[@EXPERTS]=DEVICE: where tensors go; repeatable, the first match wins (see ggmlx plan)");
    args.option("-ngl,--n-gpu-layers,--gpu-layers", flags.n_gpu_layers, {0, 1 << 20},
                "layers on the graphics card, the last ones; 0: no card is used");
    args.flag("-cmoe,--cpu-moe", flags.cpu_moe, "keep all routed experts on the cpu");
    args.option("-ncmoe,--n-cpu-moe", flags.n_cpu_moe, {0, 1 << 20},
                "keep the routed experts of the first N layers on the cpu");
    args.size("--vram", flags.vram, "memory of the card to use; default: what is free, less a margin");
    args.choice(
        "-fit,--fit", flags.fit, {"on", "off"},
        "on: whatever rules leave open is placed so that it fits the card (the default); off: all of it goes to "
        "the card");
    args.option("-ctk,--cache-type-k", flags.cache_k, "TYPE",
                fmt::format("type of cached keys: {} (f16; f32 for f32 models)", ggmlx::kCacheTypeNames));
    args.option("-ctv,--cache-type-v", flags.cache_v, "TYPE", "type of cached values, likewise");
    args.flag("--mmap", flags.mmap, "read weights in the mapped file (the default without --numa)");
    args.flag("--no-mmap", flags.no_mmap, "copy weights into memory of their own, in 2 MB pages");
    args.flag("--mlock", flags.mlock, "keep weights from being paged out");
    args.choice(
        "--numa", flags.numa, {"off", "interleave", "shard"},
        "memory of several nodes (sockets): interleave spreads weights and threads over all of them; shard also "
        "gives each node its part of every expert");
    args.flag("--no-pin", flags.no_pin,
              "let threads move between cores; otherwise a team that takes all is held there");
}

llm::EngineOptions engine_options(const EngineFlags& flags) {
    llm::EngineOptions options;
    options.n_ctx = flags.n_ctx;
    options.max_batch = std::min(flags.batch, flags.ubatch);
    options.devices.n_threads = static_cast<int>(flags.n_threads);
    options.devices.isa = flags.isa;
    options.devices.pin = !flags.no_pin;
    options.devices.fast_bf16 = flags.fast_bf16;
    options.devices.cards = flags.n_gpu_layers != 0;
    options.devices.numa = *ggmlx::numa_policy_from_name(flags.numa);
    if (flags.mmap && flags.no_mmap) throw UsageError("--mmap and --no-mmap contradict each other");
    if (flags.mmap || flags.no_mmap) options.resident = flags.no_mmap;
    options.lock_weights = flags.mlock;
    options.cache_k = cache_type("--cache-type-k", flags.cache_k);
    options.cache_v = cache_type("--cache-type-v", flags.cache_v);
    for (const std::string& argument : flags.rules)
        for (auto& rule : ggmlx::parse_rules(argument)) options.rules.push_back(std::move(rule));
    return options;
}

void add_planned_rules(llm::EngineOptions& options, const llm::ModelConfig& config, const llm::Architecture& arch,
                       const ggmlx::TensorSet& weights, std::span<const std::unique_ptr<ggmlx::Backend>> devices,
                       const EngineFlags& flags) {
    const llm::FitOptions how{.enabled = flags.fit == "on",
                              .vram = flags.vram,
                              .n_gpu_layers = flags.n_gpu_layers,
                              .cpu_moe = flags.cpu_moe,
                              .n_cpu_moe = flags.n_cpu_moe};
    for (auto& rule : llm::fit(config, arch, weights, options, devices, how)) options.rules.push_back(std::move(rule));
}

namespace {

/// Flags of a card on a machine that has none.
void warn_without_card(const EngineFlags& flags) {
    std::string given;
    const auto add = [&](bool is_given, const char* name) {
        if (is_given) given += (given.empty() ? "" : ", ") + std::string(name);
    };
    add(flags.n_gpu_layers.value_or(0) > 0, "-ngl");
    add(flags.cpu_moe, "--cpu-moe");
    add(flags.n_cpu_moe > 0, "--n-cpu-moe");
    add(flags.vram.has_value(), "--vram");
    if (given.empty()) return;
    const ggmlx::CudaCards cards = ggmlx::find_cuda_cards();
    if (cards.count == 0)
        note(fmt::format("warning: without effect, for no card is used ({}): {}", cards.problem, given));
}

}  // namespace

llm::Engine load_engine(const llm::Model& model, llm::EngineOptions options, const EngineFlags& flags,
                        const Common& common) {
    auto devices = llm::make_devices(options.devices);
    warn_without_card(flags);
    add_planned_rules(options, model.config(), model.arch(), model.weights(), devices, flags);
    Progress progress("loading", !common.quiet);
    options.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
    return llm::Engine(model, options, std::move(devices));
}

void print_engine(const llm::Engine& engine, const Common& common) {
    if (common.quiet) return;
    note(engine.start_line());
    if (const std::string line = kernel_line(engine.kernel_use()); !line.empty()) note(line);
    for (const std::string& text : engine.notes()) note("note: " + text);
    if (!common.verbose) return;
    for (const llm::DeviceUse& d : engine.device_use())
        if (d.weight_bytes + d.cache_bytes + d.workspace_bytes > 0)
            note(fmt::format("{}: weights {}, KV cache {}, workspace {}; {}", d.name, human_bytes(d.weight_bytes),
                             human_bytes(d.cache_bytes), human_bytes(d.workspace_bytes), d.description));
}

void ForeignFlags::add_to(Args& args) {
    for (Flag& f : flags_) args.foreign(f.names, f.takes_value, f.given);
}

std::string ForeignFlags::warning() const {
    std::string given;
    for (const Flag& f : flags_)
        if (f.given) given += (given.empty() ? "" : ", ") + std::string(f.names);
    return given.empty() ? "" : fmt::format("warning: without effect in this version: {}", given);
}

void note(const std::string& text) { fmt::print(stderr, "{}\n", text); }

}  // namespace cli
