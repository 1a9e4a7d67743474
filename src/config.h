#pragma once
// A model's config.json as typed values. Names follow the field (n_embd, n_head …); after load nobody looks up strings.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ggmlx/graph/op.h"

namespace llm {

/// How rotary angles are stretched beyond the context a model was trained on.
struct RopeScaling {
    enum class Kind { None, Linear, Llama3, Yarn };
    Kind kind = Kind::None;
    float factor = 1.0f;
    float low_freq_factor = 1.0f, high_freq_factor = 4.0f;  ///< llama3
    float beta_fast = 32.0f, beta_slow = 1.0f;              ///< yarn
    float attention_factor = 0.0f;                          ///< yarn: multiplies cos and sin; 0: 0.1 ln(factor) + 1
    bool truncate = true;                                   ///< yarn: the ramp begins and ends at whole pairs
    int64_t original_context = 0;                           ///< llama3 and yarn: the context that training began with
};

/// Multi-head latent attention: keys and values of all heads are read from one latent vector per token.
struct LatentAttention {
    int64_t q_rank = 0;                  ///< 0: queries are projected directly
    int64_t kv_rank = 0;                 ///< 0: the model has ordinary attention
    int64_t nope_dim = 0, rope_dim = 0;  ///< of a head's query and key: without and with rotation
    bool interleaved = true;             ///< rotation turns neighbouring values
    int64_t v_dim = 0;                   ///< of a head's value
    explicit operator bool() const { return kv_rank > 0; }
};

/// The routed experts of a model, and the shared one beside them.
struct Mixture {
    int64_t n_expert = 0;         ///< 0: a dense model
    int64_t n_ff = 0;             ///< of an expert
    int64_t n_ff_shared = 0;      ///< of the shared expert; 0: there is none
    bool shared_gate = false;     ///< the shared expert's output is multiplied with a sigmoid of its own
    bool router_bias = false;     ///< added to the router's logits
    bool selection_bias = false;  ///< added to scores for the choice alone
    bool expert_bias = false;     ///< gate, up and down of experts have biases
    ggmlx::RouterParams router;   ///< router.k experts serve a token
    ggmlx::SwiGLUParams activation;
    std::vector<bool> layers;  ///< per layer: experts, or an ordinary feed-forward network
    bool in_layer(int64_t il) const { return n_expert > 0 && layers.at(static_cast<size_t>(il)); }
};

struct ModelConfig {
    std::string architecture;  ///< config.json's model_type: "llama", "qwen3" …
    int64_t n_layer = 0;
    int64_t n_embd = 0;
    int64_t n_head = 0;
    int64_t n_head_kv = 0;
    int64_t head_dim = 0;
    int64_t n_rot = 0;        ///< values of a head that are rotated; they come first (latent attention: last)
    int64_t n_ff = 0;         ///< of ordinary feed-forward layers
    int64_t n_vocab = 0;      ///< rows of the embedding
    int64_t n_ctx_train = 0;  ///< max_position_embeddings
    float rms_norm_eps = 1e-6f;
    float rope_theta = 10000.0f;
    RopeScaling rope_scaling;
    float attention_scale = 0.0f;  ///< scores are multiplied by this
    bool tie_embeddings = false;
    bool attention_bias = false;  ///< q, k, v have biases
    bool attention_out_bias = false;
    bool mlp_bias = false;
    bool attention_sinks = false;                                       ///< a learned logit per head
    enum class QkNorm { None, PerHead, Whole } qk_norm = QkNorm::None;  ///< of q and k, before the rotation
    float clip_qkv = 0.0f;                                              ///< > 0: q, k and v are limited to ± this
    LatentAttention latent;
    Mixture mixture;
    int64_t n_mtp_layers = 0;     ///< layers after the last that predict further tokens; they are not used
    std::vector<int64_t> window;  ///< per layer: sliding window in tokens, 0 for full attention

    /// Parses config.json. Throws corrupt_file for malformed JSON or impossible numbers (naming the field) and
    /// unsupported for an architecture, activation or rope type that this version does not know, listing those it
    /// knows.
    static ModelConfig from_json(std::string_view text);
};

/// generation_config.json, with config.json's ids as fallback.
struct GenerationConfig {
    std::optional<int32_t> bos_id;
    std::vector<int32_t> eos_ids;
    std::optional<float> temperature, top_p, min_p, repetition_penalty;
    std::optional<int32_t> top_k;
    bool do_sample = false;

    /// Either text may be empty. Throws corrupt_file for malformed JSON.
    static GenerationConfig from_json(std::string_view generation_config, std::string_view config);
};

/// The angle of pair i at position p is p * inv_freq[i]; magnitude multiplies cos and sin.
struct RopeFrequencies {
    std::vector<float> inv_freq;
    float magnitude = 1.0f;
};
/// Source: Hugging Face transformers' rope utilities (default, linear, llama3, yarn); YaRN: Peng et al. 2023,
/// arXiv:2309.00071.
RopeFrequencies rope_frequencies(float theta, int64_t n_rot, const RopeScaling& scaling);

}  // namespace llm
