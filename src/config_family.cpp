#include "src/config_family.h"

#include <string>

#include "ggmlx/core/error.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;

constexpr Family kFamilies[] = {
    {.model_type = "llama", .n_ctx = 2048, .output_bias = true, .mlp_bias = true},
    {.model_type = "mistral",
     .n_head_kv = 8,
     .n_ctx = 131072,
     .attention_bias = Family::Bias::Never,
     .window = Family::Window::AllLayers,
     .default_window = 4096},
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
     .window = Family::Window::UpperLayers,
     .qk_norm = Family::Norm::PerHead},
    {.model_type = "mixtral",
     .n_head_kv = 8,
     .n_ctx = 131072,
     .rms_norm_eps = 1e-5f,
     .rope_theta = 1e6f,
     .attention_bias = Family::Bias::Never,
     .window = Family::Window::AllLayers,
     .mixture = Family::Mixture::Mixtral},
    {.model_type = "qwen2_moe",
     .n_head_kv = 16,
     .n_ctx = 32768,
     .attention_bias = Family::Bias::Always,
     .window = Family::Window::UpperLayers,
     .mixture = Family::Mixture::Qwen},
    {.model_type = "qwen3_moe",
     .n_head_kv = 4,
     .n_ctx = 32768,
     .output_bias = true,
     .qk_norm = Family::Norm::PerHead,
     .mixture = Family::Mixture::Qwen},
    {.model_type = "olmoe",
     .n_ctx = 4096,
     .rms_norm_eps = 1e-5f,
     .output_bias = true,
     .qk_norm = Family::Norm::Whole,
     .mixture = Family::Mixture::Olmoe},
    {.model_type = "gpt_oss",
     .n_head_kv = 8,
     .head_dim = 64,
     .n_ctx = 131072,
     .rms_norm_eps = 1e-5f,
     .rope_theta = 150000.0f,
     .output_bias = true,
     .window = Family::Window::Alternating,
     .default_window = 128,
     .sinks = true,
     .mixture = Family::Mixture::GptOss},
    {.model_type = "deepseek_v2", .n_ctx = 2048, .latent = true, .mixture = Family::Mixture::DeepSeekV2},
    {.model_type = "deepseek_v3", .n_ctx = 4096, .latent = true, .mixture = Family::Mixture::DeepSeekV3},
    {.model_type = "kimi_k2", .n_ctx = 4096, .latent = true, .mixture = Family::Mixture::DeepSeekV3},
    {.model_type = "glm4_moe",
     .n_head_kv = 8,
     .n_ctx = 131072,
     .rms_norm_eps = 1e-5f,
     .partial_rotary = true,
     .rotary_part = 0.5f,
     .qk_norm = Family::Norm::PerHeadAsConfigured,
     .mixture = Family::Mixture::DeepSeekV3},
    {.model_type = "minimax_m2",
     .n_head_kv = 8,
     .head_dim = 128,
     .n_ctx = 196608,
     .rope_theta = 5e6f,
     .attention_bias = Family::Bias::Never,
     .partial_rotary = true,
     .qk_norm = Family::Norm::Whole,
     .mixture = Family::Mixture::MiniMax},
};

std::string known_types() {
    std::string known;
    for (const Family& family : kFamilies) known += (known.empty() ? "" : ", ") + std::string(family.model_type);
    return known;
}

}  // namespace

const Family& find_family(const JsonFields& json) {
    const auto model_type = json.text("model_type");
    ggmlx::require(model_type.has_value(), ErrorKind::CorruptFile, "config.json has no model_type");
    for (const Family& family : kFamilies)
        if (family.model_type == *model_type) return family;
    if (auto text_config = json.object("text_config"))
        ggmlx::fail(ErrorKind::Unsupported,
                    "model_type \"{}\" is a multimodal model (its text model \"{}\" is nested in text_config), which "
                    "this version does not support; it knows {}",
                    *model_type, text_config->text("model_type").value_or("?"), known_types());
    ggmlx::fail(ErrorKind::Unsupported, "model_type \"{}\" is not supported; this version knows {}", *model_type,
                known_types());
}

}  // namespace llm
