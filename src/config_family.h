#pragma once
// Where the model families differ in their config.json: what transformers assumes when a field is missing, and which
// fields mean something. One row per model_type.

#include <cstdint>
#include <string_view>

#include "src/config_json.h"

namespace llm {

/// Layers and heads are few; matrices have extents whose products fit, token ids are int32.
inline constexpr IntRange kCount{1, 1 << 20};
inline constexpr IntRange kExtent{1, (1LL << 31) - 1};

struct Family {
    std::string_view model_type;
    int64_t n_head_kv = 0;  ///< 0: as many as heads
    int64_t head_dim = 0;   ///< 0: n_embd / n_head
    int64_t n_ctx = 0;
    float rms_norm_eps = 1e-6f;
    float rope_theta = 10000.0f;
    enum class Bias { Never, Always, AsConfigured } attention_bias = Bias::AsConfigured;
    bool output_bias = false;  ///< attention_bias speaks of the output projection too
    bool mlp_bias = false;     ///< config.json may ask for it
    enum class Window { None, AllLayers, UpperLayers, Alternating } window = Window::None;
    int64_t default_window = 0;   ///< if config.json has no sliding_window
    bool partial_rotary = false;  ///< config.json may ask for the rotation of a part of each head
    float rotary_part = 1.0f;     ///< what it means if it does not
    enum class Norm { None, PerHead, Whole, PerHeadAsConfigured } qk_norm = Norm::None;
    bool sinks = false;
    bool latent = false;  ///< multi-head latent attention
    enum class Mixture { None, Mixtral, Qwen, Olmoe, GptOss, DeepSeekV2, DeepSeekV3, MiniMax };
    Mixture mixture = Mixture::None;
};

/// Throws corrupt_file without a model_type, unsupported for one that is unknown, listing the known ones.
const Family& find_family(const JsonFields& json);

}  // namespace llm
