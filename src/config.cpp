#include "src/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ggmlx/core/error.h"
#include "src/config_family.h"
#include "src/config_mixture.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

/// Rotary settings lie in one object, whose name changed: rope_parameters since transformers 5, rope_scaling before.
std::optional<JsonFields> rope_object(const JsonFields& json) {
    auto newer = json.object("rope_parameters");
    return newer ? newer : json.object("rope_scaling");
}

RopeScaling::Kind rope_kind(const JsonFields& rope) {
    auto type = rope.text("rope_type");
    if (!type) type = rope.text("type");
    if (!type || *type == "default") return RopeScaling::Kind::None;
    if (*type == "linear") return RopeScaling::Kind::Linear;
    if (*type == "llama3") return RopeScaling::Kind::Llama3;
    if (*type == "yarn") return RopeScaling::Kind::Yarn;
    fail(ErrorKind::Unsupported,
         "{}: rope type \"{}\" is not supported; this version knows default, linear, llama3 and yarn", rope.where(),
         *type);
}

/// YaRN's factor of cos and sin when config.json gives it by two `mscale` numbers (as DeepSeek does).
float yarn_attention_factor(const JsonFields& rope, float factor) {
    if (auto given = rope.real("attention_factor", {0.0, 1e3})) return static_cast<float>(*given);
    const auto mscale = rope.real("mscale", {0.0, 1e3}), all_dim = rope.real("mscale_all_dim", {0.0, 1e3});
    if (!mscale || !all_dim || *mscale == 0 || *all_dim == 0) return 0.0f;
    auto scale = [&](double m) { return factor <= 1 ? 1.0 : 0.1 * m * std::log(static_cast<double>(factor)) + 1.0; };
    return static_cast<float>(scale(*mscale) / scale(*all_dim));
}

RopeScaling parse_rope_scaling(const JsonFields& rope, int64_t n_ctx_train) {
    RopeScaling scaling;
    scaling.kind = rope_kind(rope);
    if (scaling.kind == RopeScaling::Kind::None) return scaling;

    const auto factor = rope.real("factor", {1.0, 1e6});
    const auto original = rope.integer("original_max_position_embeddings", kExtent);
    scaling.original_context = original.value_or(n_ctx_train);
    if (factor)
        scaling.factor = static_cast<float>(*factor);
    else if (scaling.kind == RopeScaling::Kind::Yarn && original && n_ctx_train >= *original)
        scaling.factor = static_cast<float>(static_cast<double>(n_ctx_train) / static_cast<double>(*original));
    else
        fail(ErrorKind::CorruptFile, "{} has no factor", rope.where());

    if (scaling.kind == RopeScaling::Kind::Llama3) {
        scaling.low_freq_factor = static_cast<float>(rope.required_real("low_freq_factor", {1e-6, 1e6}));
        scaling.high_freq_factor = static_cast<float>(rope.required_real("high_freq_factor", {1e-6, 1e6}));
        require(scaling.low_freq_factor < scaling.high_freq_factor, ErrorKind::CorruptFile,
                "{}: low_freq_factor {} is not below high_freq_factor {}", rope.where(), scaling.low_freq_factor,
                scaling.high_freq_factor);
        require(original.has_value(), ErrorKind::CorruptFile, "{} has no original_max_position_embeddings",
                rope.where());
    }
    if (scaling.kind == RopeScaling::Kind::Yarn) {
        scaling.beta_fast = static_cast<float>(rope.real("beta_fast", {1e-6, 1e6}).value_or(32.0));
        scaling.beta_slow = static_cast<float>(rope.real("beta_slow", {1e-6, 1e6}).value_or(1.0));
        scaling.attention_factor = yarn_attention_factor(rope, scaling.factor);
        scaling.truncate = rope.boolean("truncate").value_or(true);
    }
    return scaling;
}

/// How many values of a head are rotated; heads are known.
int64_t rotated_values(const JsonFields& json, const std::optional<JsonFields>& rope, const Family& family,
                       const ModelConfig& c) {
    if (c.latent) return c.latent.rope_dim;
    auto part = json.real("partial_rotary_factor", {0.0, 1.0});
    if (rope && rope->has_value("partial_rotary_factor")) part = rope->real("partial_rotary_factor", {0.0, 1.0});
    require(family.partial_rotary || part.value_or(1.0) == 1.0, ErrorKind::Unsupported,
            "config.json: partial_rotary_factor other than 1 is not supported for {}", c.architecture);
    if (!family.partial_rotary) return c.head_dim;
    const double assumed = part.value_or(static_cast<double>(family.rotary_part));
    auto n_rot = static_cast<int64_t>(static_cast<double>(c.head_dim) * assumed);
    if (auto given = json.integer("rotary_dim", {1, c.head_dim})) n_rot = *given;
    require(n_rot > 0 && n_rot % 2 == 0, ErrorKind::CorruptFile,
            "config.json: {} values of a head are to be rotated, but rotary positions turn pairs of values", n_rot);
    return n_rot;
}

void parse_rope(const JsonFields& json, const Family& family, ModelConfig& c) {
    const auto rope = rope_object(json);
    auto theta = json.real("rope_theta", {1.0, 1e12});
    if (rope) {
        if (auto inner = rope->real("rope_theta", {1.0, 1e12})) theta = inner;
        c.rope_scaling = parse_rope_scaling(*rope, c.n_ctx_train);
    }
    c.rope_theta = theta ? static_cast<float>(*theta) : family.rope_theta;
    c.n_rot = rotated_values(json, rope, family, c);
}

/// Scores are divided by the root of a head's length. DeepSeek's models also stretch them with the context.
float scale_of_scores(const JsonFields& json, const ModelConfig& c) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim));
    const auto rope = rope_object(json);
    const double stretch = c.latent && rope && c.rope_scaling.kind != RopeScaling::Kind::None
                               ? rope->real("mscale_all_dim", {0.0, 1e3}).value_or(0.0)
                               : 0.0;
    if (stretch == 0.0 || c.rope_scaling.factor <= 1.0f) return static_cast<float>(scale);
    const double m = 0.1 * stretch * std::log(static_cast<double>(c.rope_scaling.factor)) + 1.0;
    return static_cast<float>(scale * m * m);
}

void parse_latent(const JsonFields& json, const Family& family, ModelConfig& c) {
    if (!family.latent) return;
    LatentAttention& a = c.latent;
    a.q_rank = json.integer("q_lora_rank", kExtent).value_or(0);
    a.kv_rank = json.required_integer("kv_lora_rank", kExtent);
    a.nope_dim = json.required_integer("qk_nope_head_dim", kCount);
    a.rope_dim = json.required_integer("qk_rope_head_dim", kCount);
    a.v_dim = json.required_integer("v_head_dim", kCount);
    a.interleaved = json.boolean("rope_interleave").value_or(true);
    require(!json.boolean("attention_bias").value_or(false), ErrorKind::Unsupported,
            "config.json: attention_bias of a {} model is not supported", c.architecture);
}

void parse_heads(const JsonFields& json, const Family& family, ModelConfig& c) {
    c.n_head = json.required_integer("num_attention_heads", kCount);
    const int64_t assumed = !json.has("num_key_value_heads") && family.n_head_kv ? family.n_head_kv : c.n_head;
    c.n_head_kv = json.integer("num_key_value_heads", kCount).value_or(assumed);
    require(c.n_head % c.n_head_kv == 0, ErrorKind::CorruptFile,
            "config.json: num_attention_heads {} is no multiple of num_key_value_heads {}", c.n_head, c.n_head_kv);
    if (c.latent) {
        c.head_dim = c.latent.nope_dim + c.latent.rope_dim;
    } else if (auto head_dim = json.integer("head_dim", kCount)) {
        c.head_dim = *head_dim;
    } else if (family.head_dim && !json.has("head_dim")) {
        c.head_dim = family.head_dim;
    } else {
        require(c.n_embd % c.n_head == 0, ErrorKind::CorruptFile,
                "config.json: hidden_size {} is no multiple of num_attention_heads {}, and there is no head_dim",
                c.n_embd, c.n_head);
        c.head_dim = c.n_embd / c.n_head;
    }
    const int64_t n_turned = c.latent ? c.latent.rope_dim : c.head_dim;
    require(n_turned % 2 == 0, ErrorKind::CorruptFile,
            "config.json: {} is {}, but rotary positions turn pairs of values",
            c.latent ? "qk_rope_head_dim" : "head_dim", n_turned);
    const int64_t longest = std::max(c.head_dim, c.latent.nope_dim + c.latent.v_dim);
    require(c.n_head * longest <= kExtent.max, ErrorKind::CorruptFile,
            "config.json: num_attention_heads {} times heads of {} values is too large", c.n_head, longest);
}

/// The window of each layer from the layer_types of newer configs.
void parse_layer_types(const std::vector<std::string>& types, int64_t window, ModelConfig& c) {
    require(static_cast<int64_t>(types.size()) == c.n_layer, ErrorKind::CorruptFile,
            "config.json: layer_types has {} entries for {} layers", types.size(), c.n_layer);
    for (size_t il = 0; il < types.size(); ++il) {
        const bool sliding = types[il] == "sliding_attention";
        require(sliding || types[il] == "full_attention", ErrorKind::Unsupported,
                "config.json: layer_types[{}] is \"{}\"; this version knows full_attention and sliding_attention", il,
                types[il]);
        require(!sliding || window > 0, ErrorKind::CorruptFile,
                "config.json: layer_types[{}] is sliding_attention, but there is no sliding_window", il);
        c.window[il] = sliding ? window : 0;
    }
}

void parse_windows(const JsonFields& json, const Family& family, ModelConfig& c) {
    c.window.assign(static_cast<size_t>(c.n_layer), 0);
    if (family.window == Family::Window::None) return;
    int64_t window = json.integer("sliding_window", {0, kExtent.max}).value_or(0);
    if (!json.has("sliding_window")) window = family.default_window;
    if (family.window == Family::Window::AllLayers) {
        std::fill(c.window.begin(), c.window.end(), window);
        return;
    }
    if (family.window == Family::Window::Alternating) {
        if (auto types = json.texts("layer_types")) return parse_layer_types(*types, window, c);
        for (size_t il = 0; il < c.window.size(); il += 2) c.window[il] = window;
        return;
    }
    if (!json.boolean("use_sliding_window").value_or(false)) window = 0;
    if (auto types = json.texts("layer_types")) return parse_layer_types(*types, window, c);
    const int64_t first = json.integer("max_window_layers", {0, kCount.max}).value_or(28);
    for (int64_t il = first; il < c.n_layer; ++il) c.window[static_cast<size_t>(il)] = window;
}

void parse_biases(const JsonFields& json, const Family& family, ModelConfig& c) {
    const bool wanted = json.boolean("attention_bias").value_or(false);
    c.attention_bias = family.attention_bias == Family::Bias::Always ||
                       (family.attention_bias == Family::Bias::AsConfigured && wanted);
    c.attention_out_bias = family.output_bias && wanted;
    if (c.architecture == "qwen2_moe") c.attention_bias = json.boolean("qkv_bias").value_or(true);
    c.mlp_bias = family.mlp_bias && json.boolean("mlp_bias").value_or(false);
}

void parse_extras(const JsonFields& json, const Family& family, ModelConfig& c) {
    using Norm = Family::Norm;
    const bool asked = json.boolean("use_qk_norm").value_or(false);
    if (family.qk_norm == Norm::Whole) c.qk_norm = ModelConfig::QkNorm::Whole;
    if (family.qk_norm == Norm::PerHead || (family.qk_norm == Norm::PerHeadAsConfigured && asked))
        c.qk_norm = ModelConfig::QkNorm::PerHead;
    c.attention_sinks = family.sinks;
    if (family.model_type == "olmoe") c.clip_qkv = static_cast<float>(json.real("clip_qkv", {1e-6, 1e9}).value_or(0.0));
}

}  // namespace

ModelConfig ModelConfig::from_json(std::string_view text) {
    const JsonFields json = JsonFields::parse("config.json", text);
    const Family& family = find_family(json);
    ModelConfig c;
    c.architecture = family.model_type;
    c.n_layer = json.required_integer("num_hidden_layers", {1, 4096});
    c.n_embd = json.required_integer("hidden_size", kExtent);
    c.n_ff = json.required_integer("intermediate_size", kExtent);
    c.n_vocab = json.required_integer("vocab_size", kExtent);
    c.n_ctx_train = json.integer("max_position_embeddings", kExtent).value_or(family.n_ctx);
    c.rms_norm_eps =
        static_cast<float>(json.real("rms_norm_eps", {0.0, 1.0}).value_or(static_cast<double>(family.rms_norm_eps)));
    c.tie_embeddings = json.boolean("tie_word_embeddings").value_or(false);
    const std::string activation = json.text("hidden_act").value_or("silu");
    require(activation == "silu", ErrorKind::Unsupported,
            "config.json: hidden_act \"{}\" is not supported; this version knows silu", activation);
    parse_latent(json, family, c);
    parse_heads(json, family, c);
    parse_rope(json, family, c);
    c.attention_scale = scale_of_scores(json, c);
    parse_windows(json, family, c);
    parse_biases(json, family, c);
    parse_extras(json, family, c);
    parse_mixture(json, family, c);
    return c;
}

GenerationConfig GenerationConfig::from_json(std::string_view generation_config, std::string_view config) {
    const JsonFields first = JsonFields::parse_optional("generation_config.json", generation_config);
    const JsonFields second = JsonFields::parse_optional("config.json", config);
    GenerationConfig g;
    auto narrow = [](const std::vector<int64_t>& ids) { return std::vector<int32_t>(ids.begin(), ids.end()); };
    constexpr IntRange kId{0, kExtent.max};
    const JsonFields& bos = first.has_value("bos_token_id") ? first : second;
    if (auto ids = bos.integers("bos_token_id", kId); ids && !ids->empty())
        g.bos_id = static_cast<int32_t>(ids->front());
    const JsonFields& eos = first.has_value("eos_token_id") ? first : second;
    if (auto ids = eos.integers("eos_token_id", kId)) g.eos_ids = narrow(*ids);
    auto real = [&](std::string_view name, RealRange range) -> std::optional<float> {
        auto value = first.real(name, range);
        return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
    };
    g.temperature = real("temperature", {0.0, 1e6});
    g.top_p = real("top_p", {0.0, 1.0});
    g.min_p = real("min_p", {0.0, 1.0});
    g.repetition_penalty = real("repetition_penalty", {1e-6, 1e6});
    if (auto top_k = first.integer("top_k", {0, kExtent.max})) g.top_k = static_cast<int32_t>(*top_k);
    g.do_sample = first.boolean("do_sample").value_or(false);
    return g;
}

}  // namespace llm
