// ggmlx plan: where every tensor of a model would go and what that costs, before anything is loaded or downloaded.

#include <fmt/core.h>

#include <filesystem>

#include "convert/documents.h"
#include "convert/gguf/checkpoint.h"
#include "convert/source.h"
#include "ggmlx/quant/quantize.h"
#include "src/model.h"
#include "src/session/plan_report.h"
#include "src/weights.h"
#include "tools/args.h"
#include "tools/commands/commands.h"
#include "tools/engine_flags.h"
#include "tools/json_text.h"
#include "tools/model_path.h"
#include "tools/model_text.h"
#include "tools/text_input.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct PlanFlags {
    std::string path, type = "q4_k";
    int64_t n_sequences = 1;
    bool tensors = false;
    std::optional<uint64_t> ram;
    EngineFlags engine;
    ForeignFlags foreign;
    Common common;
};

bool parse_plan(std::span<const std::string> arguments, PlanFlags& flags) {
    Args args("plan",
              "Shows where every tensor would go and what that costs: bytes per device, rules and what they move, "
              "changes of device per token. Nothing is loaded. Rules are REGEX[@EXPERTS]=DEVICE; the first match wins.",
              "  ggmlx plan model.ggmx -c 8192\n"
              "  ggmlx plan model.ggmx -ot 'blk\\.[0-3]\\..*=ref0' --tensors\n"
              "  ggmlx plan ./Qwen3-30B-A3B/config.json --type q4_k --ram 32G\n");
    args.model(flags.path, "a .ggmx, a checkpoint folder, a bare config.json or a .gguf");
    args.option("--type", flags.type, "TYPE", "type assumed for matrices when there is no .ggmx yet (q4_k)");
    args.option("-np,--parallel", flags.n_sequences, {1, 4096}, "sequences at once (1)");
    args.flag("--tensors", flags.tensors, "list every tensor with its device and the rule that decided");
    args.size("--ram", flags.ram, "memory of the cpu to compare with; default: what is free");
    add_engine_flags(args, flags.engine);
    flags.foreign.add_to(args);
    args.common(flags.common);
    return args.parse(arguments);
}

/// What is known of a model before it is loaded.
struct Described {
    llm::ModelConfig config;
    ggmlx::TensorSet weights;
    std::string assumption;  ///< empty for a .ggmx
};

/// A GGUF file, every tensor as `ggmlx convert` would store it.
Described describe_gguf(const std::string& path) {
    const auto source = convert::open_source(path);
    const auto documents = source->documents();
    auto config = llm::ModelConfig::from_json(*convert::find_document(documents, "config.json"));
    const llm::Architecture& architecture = llm::architecture(config.architecture);
    const auto specs = architecture.tensors(config);
    (void)source->match(architecture, specs, {});
    ggmlx::TensorSet weights;
    for (const llm::TensorSpec& spec : specs) {
        const ggmlx::DType own = spec.quantizable ? source->stored_type(spec).dtype : ggmlx::DType::F32;
        weights.add(spec.name, ggmlx::storable_type(own, spec.shape[-1]), spec.shape, spec.role);
    }
    return {std::move(config), std::move(weights), "types as `ggmlx convert` would store them"};
}

Described describe(const PlanFlags& flags) {
    if (convert::is_gguf_file(flags.path)) return describe_gguf(flags.path);
    if (is_model_file(flags.path)) {
        const auto file = open_model(flags.path);
        auto config = llm::ModelConfig::from_json(file.document("config.json"));
        auto weights = llm::describe_weights(file, llm::architecture(config.architecture).tensors(config));
        return {std::move(config), std::move(weights), ""};
    }
    const auto type = ggmlx::dtype_from_name(flags.type);
    if (!type) throw UsageError(fmt::format("--type: \"{}\" is none of {}", flags.type, ggmlx::all_dtype_names()));
    const fs::path json = fs::is_directory(flags.path) ? fs::path(flags.path) / "config.json" : fs::path(flags.path);
    auto config = llm::ModelConfig::from_json(read_text(json.string()));
    auto weights = llm::describe_weights(llm::architecture(config.architecture).tensors(config), *type);
    return {std::move(config), std::move(weights), fmt::format("matrices assumed as {}", ggmlx::name(*type))};
}

int64_t n_values(const ggmlx::TensorSet& weights) {
    int64_t n = 0;
    for (int32_t i = 0; i < weights.size(); ++i) n += weights[i].shape().n_elements();
    return n;
}

ordered_json plan_json(const llm::PlanReport& r, const Described& model) {
    ordered_json json = {{"architecture", model.config.architecture},
                         {"config", model_json(model.config)},
                         {"parameters", n_values(model.weights)},
                         {"n_ctx", r.n_ctx},
                         {"max_batch", r.max_batch},
                         {"assumption", model.assumption}};
    for (const auto& d : r.devices)
        json["devices"].push_back({{"name", d.name},
                                   {"description", d.description},
                                   {"dense_bytes", d.dense_bytes},
                                   {"expert_bytes", d.expert_bytes},
                                   {"kv_bytes", d.cache_bytes},
                                   {"workspace_bytes", d.workspace_bytes},
                                   {"total_bytes", d.total_bytes()},
                                   {"free_bytes", d.free_bytes}});
    json["rules"] = ordered_json::array();
    for (const auto& u : r.rules)
        json["rules"].push_back({{"rule", u.rule},
                                 {"device", u.device},
                                 {"matched", u.n_matched},
                                 {"decided", u.n_decided},
                                 {"bytes", u.size_bytes}});
    json["switches_per_token"] = r.switches_per_token;
    json["switches_per_batch"] = r.switches_per_batch;
    json["notes"] = r.notes;
    json["hints"] = r.hints;
    for (const auto& t : r.tensors) {
        ordered_json entry = {{"name", t.tensor}, {"type", t.type}, {"device", t.device}, {"bytes", t.size_bytes}};
        entry["rule"] = t.rule.empty() ? ordered_json() : ordered_json(t.rule);
        if (t.n_experts > 0) entry["experts"] = t.n_experts;
        json["tensors"].push_back(std::move(entry));
    }
    return json;
}

void print_devices(const llm::PlanReport& r) {
    fmt::print("{:<8} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "device", "dense", "experts", "KV cache",
               "workspace", "total", "left");
    for (const auto& d : r.devices) {
        if (d.total_bytes() == 0) continue;
        const bool fits = d.total_bytes() <= d.free_bytes;
        fmt::print("{:<8} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", d.name, human_bytes(d.dense_bytes),
                   human_bytes(d.expert_bytes), human_bytes(d.cache_bytes), human_bytes(d.workspace_bytes),
                   human_bytes(d.total_bytes()), fits ? human_bytes(d.free_bytes - d.total_bytes()) : "too little");
    }
}

void print_rules(const llm::PlanReport& r) {
    if (r.rules.empty()) return;
    fmt::print("\n{:<48} {:>8} {:>8} {:>12}\n", "rule", "matches", "decides", "bytes");
    for (const auto& u : r.rules)
        fmt::print("{:<48} {:>8} {:>8} {:>12}\n", u.rule, u.n_matched, u.n_decided, human_bytes(u.size_bytes));
}

void print_tensors(const llm::PlanReport& r) {
    fmt::print("\n{:<36} {:<8} {:>12}  {:<8} {}\n", "tensor", "type", "bytes", "device", "decided by");
    for (const auto& t : r.tensors) {
        const std::string experts = t.n_experts > 0 ? fmt::format(" ({} experts)", t.n_experts) : "";
        fmt::print("{:<36} {:<8} {:>12}  {:<8} {}{}\n", t.tensor, t.type, human_bytes(t.size_bytes), t.device,
                   t.rule.empty() ? "default" : t.rule, experts);
    }
}

void print_plan(const llm::PlanReport& r, const Described& model, bool tensors) {
    fmt::print("{}\n", describe_model(model.config));
    if (model.config.mixture.n_expert > 0) fmt::print("experts: {}\n", describe_experts(model.config));
    fmt::print("parameters: {}\n", describe_parameters(model.config));
    if (!model.assumption.empty()) fmt::print("{}\n", model.assumption);
    fmt::print("context {} tokens, steps of at most {} tokens\n\n", r.n_ctx, r.max_batch);
    print_devices(r);
    print_rules(r);
    if (tensors) print_tensors(r);
    fmt::print("\ndevice switches: {} per token, {} per full step\n", r.switches_per_token, r.switches_per_batch);
    for (const auto& text : r.notes) fmt::print("note: {}\n", text);
    for (const auto& text : r.hints) fmt::print("hint: {}\n", text);
}

}  // namespace

int run_plan(std::span<const std::string> arguments) {
    PlanFlags flags;
    if (!parse_plan(arguments, flags)) return 0;
    if (const auto warning = flags.foreign.warning(); !warning.empty()) note(warning);
    const Described model = describe(flags);
    llm::EngineOptions options = engine_options(flags.engine);
    options.n_sequences = flags.n_sequences;

    const auto devices = llm::make_devices(options.devices);
    std::vector<std::string> names;
    std::vector<ggmlx::Backend*> backends;
    for (const auto& d : devices) {
        names.push_back(d->name());
        backends.push_back(d.get());
    }
    const llm::Architecture& arch = llm::architecture(model.config.architecture);
    add_planned_rules(options, model.config, arch, model.weights, devices, flags.engine);
    const llm::Blueprint blueprint(model.config, arch, model.weights, options, names);
    llm::PlanReport report = llm::plan_report(blueprint, options.rules, backends);
    if (flags.ram) report.devices[0].free_bytes = *flags.ram;
    if (flags.common.json)
        fmt::print("{}\n", json_line(plan_json(report, model)));
    else
        print_plan(report, model, flags.tensors);
    return 0;
}

}  // namespace cli
