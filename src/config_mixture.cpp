#include "src/config_mixture.h"

#include <algorithm>

#include "ggmlx/core/error.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using Score = ggmlx::RouterParams::Score;

constexpr IntRange kExperts{1, 65536};  // what a model file can hold

/// The first of several names that config.json has.
int64_t required_count(const JsonFields& fields, std::initializer_list<std::string_view> names) {
    for (std::string_view name : names)
        if (auto value = fields.integer(name, kExperts)) return *value;
    return fields.required_integer(*names.begin(), kExperts);
}

/// Fails unless a field is missing or says `value`.
void require_text(const JsonFields& fields, std::string_view field, std::string_view value) {
    const auto given = fields.text(field);
    require(!given || *given == value, ErrorKind::Unsupported,
            "config.json: {} \"{}\" is not supported; this version knows {}", field, given.value_or(""), value);
}

/// Experts per token; n_expert is set.
void parse_used(const JsonFields& fields, Mixture& m) {
    const int64_t used = required_count(fields, {"num_experts_per_tok", "experts_per_token"});
    require(used <= m.n_expert, ErrorKind::CorruptFile,
            "config.json: num_experts_per_tok is {}, but there are {} experts", used, m.n_expert);
    m.router.k = static_cast<int32_t>(used);
}

void parse_mixtral(const JsonFields& fields, ModelConfig& c) {
    Mixture& m = c.mixture;
    m.n_expert = required_count(fields, {"num_local_experts", "num_experts"});
    parse_used(fields, m);
    m.n_ff = c.n_ff;
    m.router.normalize = true;
}

void parse_olmoe(const JsonFields& fields, ModelConfig& c) {
    Mixture& m = c.mixture;
    m.n_expert = required_count(fields, {"num_experts", "num_local_experts"});
    parse_used(fields, m);
    m.n_ff = c.n_ff;
    m.router.normalize = fields.boolean("norm_topk_prob").value_or(false);
}

/// Experts in every decoder_sparse_step-th layer, but not in those of mlp_only_layers.
void parse_qwen(const JsonFields& fields, ModelConfig& c) {
    Mixture& m = c.mixture;
    m.n_expert = required_count(fields, {"num_experts", "num_local_experts"});
    parse_used(fields, m);
    m.n_ff = fields.required_integer("moe_intermediate_size", kExtent);
    m.router.normalize = fields.boolean("norm_topk_prob").value_or(false);
    const int64_t step = fields.integer("decoder_sparse_step", kCount).value_or(1);
    const auto dense = fields.integers("mlp_only_layers", {0, kCount.max}).value_or(std::vector<int64_t>());
    for (int64_t il = 0; il < c.n_layer; ++il)
        m.layers[static_cast<size_t>(il)] =
            (il + 1) % step == 0 && std::find(dense.begin(), dense.end(), il) == dense.end();
    if (c.architecture == "qwen2_moe") {
        m.n_ff_shared = fields.required_integer("shared_expert_intermediate_size", kExtent);
        m.shared_gate = true;
    } else {
        require(!fields.boolean("use_sliding_window").value_or(false), ErrorKind::Unsupported,
                "config.json: use_sliding_window is not supported for {}", c.architecture);
    }
}

void parse_gpt_oss(const JsonFields& fields, ModelConfig& c) {
    Mixture& m = c.mixture;
    m.n_expert = required_count(fields, {"num_local_experts", "num_experts"});
    parse_used(fields, m);
    m.n_ff = c.n_ff;
    m.router.score = Score::SoftmaxOfChosen;
    m.router_bias = m.expert_bias = true;
    m.activation.alpha = 1.702f;
    m.activation.clamp = static_cast<float>(fields.real("swiglu_limit", {1e-3, 1e6}).value_or(7.0));
    m.activation.up_offset = 1.0f;
}

/// What DeepSeek's and GLM's models have in common: dense layers first, a shared expert, groups, a scale.
void parse_deepseek(const JsonFields& fields, ModelConfig& c) {
    Mixture& m = c.mixture;
    m.n_expert = required_count(fields, {"n_routed_experts", "num_local_experts", "num_experts"});
    parse_used(fields, m);
    m.n_ff = fields.required_integer("moe_intermediate_size", kExtent);
    const int64_t n_shared = fields.integer("n_shared_experts", {0, kExperts.max}).value_or(0);
    m.n_ff_shared = n_shared * m.n_ff;
    require(m.n_ff_shared <= kExtent.max, ErrorKind::CorruptFile, "config.json: n_shared_experts {} is too large",
            n_shared);
    const int64_t n_dense = fields.integer("first_k_dense_replace", {0, kCount.max}).value_or(0);
    const int64_t step = fields.integer("moe_layer_freq", kCount).value_or(1);
    for (int64_t il = 0; il < c.n_layer; ++il) m.layers[static_cast<size_t>(il)] = il >= n_dense && il % step == 0;
    m.router.normalize = fields.boolean("norm_topk_prob").value_or(false);
    m.router.scale = static_cast<float>(fields.real("routed_scaling_factor", {1e-6, 1e6}).value_or(1.0));
}

void parse_groups(const JsonFields& fields, int32_t group_best, Mixture& m) {
    const int64_t n_groups = fields.integer("n_group", kExperts).value_or(1);
    const int64_t used = fields.integer("topk_group", kExperts).value_or(n_groups);
    require(m.n_expert % n_groups == 0, ErrorKind::CorruptFile,
            "config.json: {} experts do not form n_group {} groups of equal size", m.n_expert, n_groups);
    require(used <= n_groups && m.router.k <= used * (m.n_expert / n_groups), ErrorKind::CorruptFile,
            "config.json: topk_group {} of n_group {} groups do not hold num_experts_per_tok {} experts", used,
            n_groups, m.router.k);
    m.router.n_groups = static_cast<int32_t>(n_groups);
    m.router.groups_used = static_cast<int32_t>(used);
    m.router.group_best = static_cast<int32_t>(std::min<int64_t>(group_best, m.n_expert / n_groups));
}

void parse_deepseek_v2(const JsonFields& fields, ModelConfig& c) {
    parse_deepseek(fields, c);
    require_text(fields, "scoring_func", "softmax");
    const std::string method = fields.text("topk_method").value_or("greedy");
    require(method == "greedy" || method == "group_limited_greedy", ErrorKind::Unsupported,
            "config.json: topk_method \"{}\" of a deepseek_v2 model is not supported; this version knows greedy and "
            "group_limited_greedy",
            method);
    require(!c.mixture.router.normalize, ErrorKind::Unsupported,
            "config.json: norm_topk_prob of a deepseek_v2 model is not supported: published implementations disagree "
            "on what it means");
    if (method == "group_limited_greedy") parse_groups(fields, 1, c.mixture);
}

void parse_deepseek_v3(const JsonFields& fields, ModelConfig& c) {
    parse_deepseek(fields, c);
    require_text(fields, "scoring_func", "sigmoid");
    require_text(fields, "topk_method", "noaux_tc");
    c.mixture.router.score = Score::Sigmoid;
    c.mixture.router.normalize = fields.boolean("norm_topk_prob").value_or(true);
    c.mixture.selection_bias = true;
    parse_groups(fields, 2, c.mixture);
}

void parse_minimax(const JsonFields& fields, ModelConfig& c) {
    Mixture& m = c.mixture;
    m.n_expert = required_count(fields, {"num_local_experts", "num_experts"});
    parse_used(fields, m);
    require_text(fields, "scoring_func", "sigmoid");
    require_text(fields, "qk_norm_type", "per_layer");
    require(fields.boolean("use_qk_norm").value_or(true), ErrorKind::Unsupported,
            "config.json: a minimax_m2 model without use_qk_norm is not supported");
    require(fields.integer("shared_intermediate_size", {0, kExtent.max}).value_or(0) == 0, ErrorKind::Unsupported,
            "config.json: shared_intermediate_size of a minimax_m2 model is not supported");
    const auto kinds = fields.integers("attn_type_list", {0, 1}).value_or(std::vector<int64_t>());
    require(std::find(kinds.begin(), kinds.end(), 0) == kinds.end(), ErrorKind::Unsupported,
            "config.json: attn_type_list has layers of linear attention, which this version does not support");
    m.n_ff = c.n_ff;
    m.router.score = Score::Sigmoid;
    m.router.normalize = true;
    m.selection_bias = fields.boolean("use_routing_bias").value_or(true);
}

/// How many layers for further tokens the checkpoint holds after the last one.
int64_t mtp_layers(const JsonFields& fields) {
    constexpr IntRange kFew{0, 64};
    if (auto n = fields.integer("num_nextn_predict_layers", kFew)) return *n;
    const bool used = fields.boolean("use_mtp").value_or(false);
    return used ? fields.integer("num_mtp_modules", kFew).value_or(0) : 0;
}

void parse_family(const JsonFields& fields, Family::Mixture kind, ModelConfig& c) {
    using Kind = Family::Mixture;
    switch (kind) {
        case Kind::None:
            return;
        case Kind::Mixtral:
            return parse_mixtral(fields, c);
        case Kind::Qwen:
            return parse_qwen(fields, c);
        case Kind::Olmoe:
            return parse_olmoe(fields, c);
        case Kind::GptOss:
            return parse_gpt_oss(fields, c);
        case Kind::DeepSeekV2:
            return parse_deepseek_v2(fields, c);
        case Kind::DeepSeekV3:
            return parse_deepseek_v3(fields, c);
        case Kind::MiniMax:
            return parse_minimax(fields, c);
    }
}

}  // namespace

void parse_mixture(const JsonFields& fields, const Family& family, ModelConfig& c) {
    if (family.mixture == Family::Mixture::None) return;
    c.mixture.layers.assign(static_cast<size_t>(c.n_layer), true);
    c.n_mtp_layers = mtp_layers(fields);
    parse_family(fields, family.mixture, c);
    constexpr int64_t kMostValues = int64_t{1} << 48;  // of one stacked tensor
    require(c.mixture.n_ff <= kMostValues / c.mixture.n_expert / c.n_embd, ErrorKind::CorruptFile,
            "config.json: {} experts of {} x {} values are too large", c.mixture.n_expert, c.mixture.n_ff, c.n_embd);
}

}  // namespace llm
