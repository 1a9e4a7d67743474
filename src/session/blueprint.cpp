#include "src/session/blueprint.h"

#include <algorithm>

#include "ggmlx/core/error.h"
#include "ggmlx/core/suggest.h"
#include "src/session/step.h"

namespace llm {

using ggmlx::DType;
using ggmlx::ErrorKind;
using ggmlx::require;
using ggmlx::Tensor;
using ggmlx::TensorSet;

namespace {

constexpr int64_t kDefaultContextLimit = 32768;

int64_t context_of(const ModelConfig& config, int64_t wanted) {
    require(wanted >= 0, ErrorKind::InvalidArgument, "a context of {} tokens makes no sense (-c)", wanted);
    require(wanted <= config.n_ctx_train, ErrorKind::InvalidArgument,
            "a context of {} tokens (-c) is more than the {} that the model was made for", wanted, config.n_ctx_train);
    return wanted > 0 ? wanted : std::min(config.n_ctx_train, kDefaultContextLimit);
}

DType default_cache_type(const TensorSet& weights) {
    for (int32_t i = 0; i < weights.size(); ++i)
        if (weights[i].shape().rank() > 1 && weights[i].dtype() != DType::F32) return DType::F16;
    return DType::F32;
}

/// The type of cached values. Layers that cache one row for both (latent attention) have one type.
DType value_cache_type(std::span<const KvLayer> layers, DType k, std::optional<DType> wanted, DType otherwise) {
    const bool latent = std::any_of(layers.begin(), layers.end(), [](const KvLayer& l) { return l.head_dim_v == 0; });
    if (!latent) return wanted.value_or(otherwise);
    if (wanted && *wanted != k)
        ggmlx::fail(ErrorKind::InvalidArgument,
                    "--cache-type-v {}: this model caches one row for key and value, whose type is --cache-type-k "
                    "({}); leave --cache-type-v out or give both the same",
                    ggmlx::name(*wanted), ggmlx::name(k));
    return k;
}

TensorSet copy_of(const TensorSet& weights) {
    TensorSet copy;
    for (int32_t i = 0; i < weights.size(); ++i) {
        const Tensor t = weights[i];
        copy.add(t.name(), t.dtype(), t.shape(), t.info().role);
    }
    return copy;
}

StepShape largest_step(const EngineOptions& o, int64_t n_ctx) {
    require(o.max_batch >= 1 && o.n_sequences >= 1 && o.max_outputs >= 0, ErrorKind::InvalidArgument,
            "a step needs at least one token and one sequence, not {} and {}", o.max_batch, o.n_sequences);
    // A step never holds more tokens than fit into all contexts together.
    const int64_t n_tokens = std::min(o.max_batch, n_ctx * o.n_sequences);
    const int64_t n_outputs = o.max_outputs > 0 ? o.max_outputs : o.n_sequences;
    return {n_tokens, std::min(n_outputs, n_tokens), o.n_sequences};
}

std::vector<std::string> value_names(const ggmlx::Graph& graph) {
    std::vector<std::string> names;
    for (const ggmlx::Node& n : graph.nodes())
        for (Tensor t : n.outputs) names.push_back(t.name());
    return names;
}

void keep(ggmlx::Graph& graph, const std::string& name) {
    const Tensor t = graph.find(name);
    require(t && t.kind() == ggmlx::TensorKind::Value, ErrorKind::InvalidArgument,
            "--dump: the graph has no value {}{}", name, ggmlx::did_you_mean(name, value_names(graph)));
    if (name != "logits") graph.output(t, name);
}

}  // namespace

Blueprint::Blueprint(const ModelConfig& config, const Architecture& arch, const TensorSet& weights,
                     const EngineOptions& options, std::span<const std::string> device_names)
    : config_(config),
      arch_(arch),
      n_ctx_(context_of(config, options.n_ctx)),
      largest_(largest_step(options, n_ctx_)),
      dumps_(options.dumps),
      tensors_(copy_of(weights)) {
    const std::vector<KvLayer> layers = arch.kv_layers(config);
    PagedCacheLayout layout;
    layout.n_ctx = n_ctx_;
    layout.n_sequences = options.n_sequences;
    layout.k = options.cache_k.value_or(default_cache_type(weights));
    layout.v = value_cache_type(layers, layout.k, options.cache_v, default_cache_type(weights));
    cache_ = std::make_unique<PagedCache>(tensors_, layers, layout);
    placement_ = place_model(tensors_, layers, options.rules, device_names);
}

StepShape Blueprint::padded(int64_t n_tokens, int64_t n_outputs) const {
    return {plan_size(n_tokens, largest_.n_tokens), plan_size(std::max<int64_t>(n_outputs, 1), largest_.n_outputs),
            largest_.n_sequences};
}

std::shared_ptr<const ggmlx::Graph> Blueprint::graph(const StepShape& shape) const {
    auto graph = std::make_shared<ggmlx::Graph>();
    BuildContext c{*graph, config_, tensors_, shape, {}, {}, {}, {}};
    c.ids = graph->input("ids", DType::I32, {shape.n_tokens});
    c.positions = graph->input("positions", DType::I32, {shape.n_tokens});
    c.sequence = graph->input("sequence", DType::I32, {shape.n_tokens});
    c.outputs = graph->input("outputs", DType::I32, {shape.n_outputs});
    cache_->add_inputs(*graph, shape);
    graph->output(arch_.build(c), "logits");
    for (const std::string& name : dumps_) keep(*graph, name);
    return graph;
}

ggmlx::Plan Blueprint::plan(const StepShape& shape, std::vector<ggmlx::PlanDevice> devices) const {
    ggmlx::PlanRequest request;
    request.graph = graph(shape);
    request.placement = &placement_;
    request.devices = std::move(devices);
    return ggmlx::make_plan(request);
}

}  // namespace llm
