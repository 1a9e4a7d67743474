#include "src/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ggmlx/core/error.h"
#include "src/config_json.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

/// Where the families differ: what transformers assumes when config.json does not say.
struct Family {
    std::string_view model_type;
    int64_t n_head_kv = 0;  ///< 0: as many as heads
    int64_t head_dim = 0;   ///< 0: n_embd / n_head
    int64_t n_ctx = 0;
    enum class Bias { Never, Always, AsConfigured } attention_bias = Bias::AsConfigured;
    bool output_bias = false;  ///< attention_bias speaks of the output projection too
    bool mlp_bias = false;     ///< config.json may ask for it
    enum class Window { None, AllLayers, UpperLayers } window = Window::None;
};

constexpr Family kFamilies[] = {
    {.model_type = "llama", .n_ctx = 2048, .output_bias = true, .mlp_bias = true},
    {.model_type = "mistral",
     .n_head_kv = 8,
     .n_ctx = 131072,
     .attention_bias = Family::Bias::Never,
     .window = Family::Window::AllLayers},
    {.model_type = "qwen2",
     .n_head_kv = 32,
     .n_ctx = 32768,
     .attention_bias = Family::Bias::Always,
     .window = Family::Window::UpperLayers},
    {.model_type = "qwen3",
     .n_head_kv = 32,
     .head_dim = 128,
     .n_ctx = 32768,
     .output_bias = true,
     .window = Family::Window::UpperLayers},
};

constexpr IntRange kCount{1, 1 << 20};           // layers are few, heads few
constexpr IntRange kExtent{1, (1LL << 31) - 1};  // of a matrix; token ids are int32

std::string known_types() {
    std::string known;
    for (const Family& family : kFamilies) known += (known.empty() ? "" : ", ") + std::string(family.model_type);
    return known;
}

const Family& find_family(const JsonFields& json) {
    const auto model_type = json.text("model_type");
    require(model_type.has_value(), ErrorKind::CorruptFile, "config.json has no model_type");
    for (const Family& family : kFamilies)
        if (family.model_type == *model_type) return family;
    if (auto text_config = json.object("text_config"))
        fail(ErrorKind::Unsupported,
             "model_type \"{}\" is a multimodal model (its text model \"{}\" is nested in text_config), which this "
             "version does not support; it knows {}",
             *model_type, text_config->text("model_type").value_or("?"), known_types());
    fail(ErrorKind::Unsupported, "model_type \"{}\" is not supported; this version knows {}", *model_type,
         known_types());
}

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
    require(rope.real("partial_rotary_factor", {0.0, 1.0}).value_or(1.0) == 1.0, ErrorKind::Unsupported,
            "{}: partial_rotary_factor other than 1 is not supported", rope.where());
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

void parse_rope(const JsonFields& json, ModelConfig& c) {
    const auto rope = rope_object(json);
    auto theta = json.real("rope_theta", {1.0, 1e12});
    if (rope) {
        if (auto inner = rope->real("rope_theta", {1.0, 1e12})) theta = inner;
        c.rope_scaling = parse_rope_scaling(*rope, c.n_ctx_train);
    }
    c.rope_theta = static_cast<float>(theta.value_or(10000.0));
    require(json.real("partial_rotary_factor", {0.0, 1.0}).value_or(1.0) == 1.0, ErrorKind::Unsupported,
            "config.json: partial_rotary_factor other than 1 is not supported");
}

void parse_heads(const JsonFields& json, const Family& family, ModelConfig& c) {
    c.n_head = json.required_integer("num_attention_heads", kCount);
    const int64_t assumed = !json.has("num_key_value_heads") && family.n_head_kv ? family.n_head_kv : c.n_head;
    c.n_head_kv = json.integer("num_key_value_heads", kCount).value_or(assumed);
    require(c.n_head % c.n_head_kv == 0, ErrorKind::CorruptFile,
            "config.json: num_attention_heads {} is no multiple of num_key_value_heads {}", c.n_head, c.n_head_kv);
    if (auto head_dim = json.integer("head_dim", kCount)) {
        c.head_dim = *head_dim;
    } else if (family.head_dim && !json.has("head_dim")) {
        c.head_dim = family.head_dim;
    } else {
        require(c.n_embd % c.n_head == 0, ErrorKind::CorruptFile,
                "config.json: hidden_size {} is no multiple of num_attention_heads {}, and there is no head_dim",
                c.n_embd, c.n_head);
        c.head_dim = c.n_embd / c.n_head;
    }
    require(c.head_dim % 2 == 0, ErrorKind::CorruptFile,
            "config.json: head_dim is {}, but rotary positions turn pairs of values", c.head_dim);
    require(c.n_head * c.head_dim <= kExtent.max, ErrorKind::CorruptFile,
            "config.json: num_attention_heads {} times head_dim {} is too large", c.n_head, c.head_dim);
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
    int64_t window = json.integer("sliding_window", kExtent).value_or(0);
    if (family.window == Family::Window::AllLayers) {
        if (!json.has("sliding_window")) window = 4096;  // transformers' default for Mistral
        std::fill(c.window.begin(), c.window.end(), window);
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
    c.mlp_bias = family.mlp_bias && json.boolean("mlp_bias").value_or(false);
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
    c.rms_norm_eps = static_cast<float>(json.real("rms_norm_eps", {0.0, 1.0}).value_or(1e-6));
    c.tie_embeddings = json.boolean("tie_word_embeddings").value_or(false);
    const std::string activation = json.text("hidden_act").value_or("silu");
    require(activation == "silu", ErrorKind::Unsupported,
            "config.json: hidden_act \"{}\" is not supported; this version knows silu", activation);
    parse_heads(json, family, c);
    parse_rope(json, c);
    parse_windows(json, family, c);
    parse_biases(json, family, c);
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
