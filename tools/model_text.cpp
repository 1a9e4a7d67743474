#include "tools/model_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "src/arch/arch.h"
#include "src/arch/parameters.h"
#include "tools/type_table.h"

namespace cli {
namespace {

int64_t n_expert_layers(const llm::Mixture& m) { return std::count(m.layers.begin(), m.layers.end(), true); }

bool has_dense_layers(const llm::ModelConfig& c) {
    return c.mixture.n_expert == 0 || n_expert_layers(c.mixture) < c.n_layer;
}

llm::ParameterCount parameters(const llm::ModelConfig& c) {
    return llm::count_parameters(c, llm::architecture(c.architecture).tensors(c));
}

}  // namespace

std::string describe_model(const llm::ModelConfig& c) {
    std::string text = fmt::format("{}: {} layers, {} wide; {} heads of {}, ", c.architecture, c.n_layer, c.n_embd,
                                   c.n_head, c.head_dim);
    text += c.latent ? fmt::format("latent keys and values of {} + {}", c.latent.kv_rank, c.latent.rope_dim)
                     : fmt::format("{} for keys and values", c.n_head_kv);
    if (has_dense_layers(c)) text += fmt::format("; feed-forward {}", c.n_ff);
    return text;
}

std::string describe_experts(const llm::ModelConfig& c) {
    const llm::Mixture& m = c.mixture;
    if (m.n_expert == 0) return "";
    std::string text = fmt::format("{} of {} wide, {} for each token, in {} of {} layers", m.n_expert, m.n_ff,
                                   m.router.k, n_expert_layers(m), c.n_layer);
    if (m.n_ff_shared > 0) text += fmt::format("; shared expert of {}", m.n_ff_shared);
    return text;
}

std::string describe_parameters(const llm::ModelConfig& c) {
    const llm::ParameterCount count = parameters(c);
    std::string text = with_thousands(count.total);
    if (c.mixture.n_expert > 0)
        text += fmt::format(", of which {} work on each token", with_thousands(count.per_token));
    return text;
}

nlohmann::ordered_json model_json(const llm::ModelConfig& c) {
    nlohmann::ordered_json json = {{"n_layer", c.n_layer},     {"n_embd", c.n_embd},          {"n_head", c.n_head},
                                   {"n_head_kv", c.n_head_kv}, {"head_dim", c.head_dim},      {"n_ff", c.n_ff},
                                   {"n_vocab", c.n_vocab},     {"n_ctx_train", c.n_ctx_train}};
    if (c.latent) json["kv_rank"] = c.latent.kv_rank;
    const llm::Mixture& m = c.mixture;
    if (m.n_expert == 0) return json;
    json["n_expert"] = m.n_expert;
    json["n_expert_used"] = m.router.k;
    json["n_ff_expert"] = m.n_ff;
    json["n_ff_shared"] = m.n_ff_shared;
    json["n_expert_layers"] = n_expert_layers(m);
    json["parameters_per_token"] = parameters(c).per_token;
    return json;
}

}  // namespace cli
