#include "convert/gguf/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convert/gguf/decode.h"
#include "convert/gguf/tokenizer.h"
#include "ggmlx/core/error.h"
#include "src/config.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;
using nlohmann::ordered_json;

constexpr GgufFamily kFamilies[] = {
    {"llama", "llama", true},  // Mistral's and many others' models say so too
    {"qwen2", "qwen2", false},
    {"qwen3", "qwen3", false},
};

constexpr int64_t kMaxExtent = (1LL << 31) - 1, kMaxCount = 1 << 20, kMaxLayers = 4096;

/// Keys of the architecture that are read below, or that say nothing a config.json needs. Others are reported.
constexpr std::string_view kKnownKeys[] = {"block_count",
                                           "context_length",
                                           "embedding_length",
                                           "feed_forward_length",
                                           "vocab_size",
                                           "expert_count",
                                           "expert_used_count",
                                           "attention.head_count",
                                           "attention.head_count_kv",
                                           "attention.key_length",
                                           "attention.value_length",
                                           "attention.layer_norm_rms_epsilon",
                                           "attention.layer_norm_epsilon",
                                           "attention.sliding_window",
                                           "attention.causal",
                                           "attention.scale",
                                           "embedding_scale",
                                           "residual_scale",
                                           "logit_scale",
                                           "tensor_data_layout",
                                           "use_parallel_residual",
                                           "rope.dimension_count",
                                           "rope.freq_base",
                                           "rope.scale_linear",
                                           "rope.scaling.type",
                                           "rope.scaling.factor",
                                           "rope.scaling.original_context_length",
                                           "rope.scaling.finetuned",
                                           "rope.scaling.attn_factor",
                                           "rope.scaling.yarn_beta_fast",
                                           "rope.scaling.yarn_beta_slow"};

/// Look-ups of "ARCHITECTURE.NAME".
class HyperParameters {
  public:
    explicit HyperParameters(const GgufMetadata& metadata)
        : metadata_(metadata), prefix_(std::string(metadata.required_text("general.architecture")) + ".") {}

    std::string key(std::string_view name) const { return prefix_ + std::string(name); }
    const GgufMetadata& metadata() const { return metadata_; }

    /// A number, or one for each layer if they are all the same.
    std::optional<int64_t> integer(std::string_view name, int64_t min, int64_t max) const {
        const std::string full = key(name);
        const GgufValue* value = metadata_.find(full);
        if (!value || !value->is_array) return metadata_.integer(full, min, max);
        require(value->count <= uint64_t{kMaxLayers}, ErrorKind::CorruptFile, "{}: {} has {} entries", metadata_.path(),
                full, value->count);
        const auto numbers = metadata_.integers(full);
        require(!numbers.empty() &&
                    std::adjacent_find(numbers.begin(), numbers.end(), std::not_equal_to<>()) == numbers.end(),
                ErrorKind::Unsupported, "{}: {} differs from layer to layer, which is not supported", metadata_.path(),
                full);
        require(numbers[0] >= min && numbers[0] <= max, ErrorKind::CorruptFile, "{}: {} is {}, outside {} to {}",
                metadata_.path(), full, numbers[0], min, max);
        return numbers[0];
    }
    int64_t required_integer(std::string_view name, int64_t min, int64_t max) const {
        const auto value = integer(name, min, max);
        require(value.has_value(), ErrorKind::CorruptFile, "{} has no {}", metadata_.path(), key(name));
        return *value;
    }
    std::optional<double> real(std::string_view name, double min, double max) const {
        return metadata_.real(key(name), min, max);
    }
    /// Throws unsupported unless the key is missing or says what is the case anyway.
    void require_usual(std::string_view name, double usual) const {
        const auto value = real(name, -1e30, 1e30);
        require(!value || *value == usual, ErrorKind::Unsupported, "{}: {} is {}, which is not supported",
                metadata_.path(), key(name), value.value_or(usual));
    }
    std::vector<std::string> unknown() const {
        std::vector<std::string> names;
        for (const auto& [full, value] : metadata_.values()) {
            if (!full.starts_with(prefix_)) continue;
            const std::string_view name = full.substr(prefix_.size());
            if (std::find(std::begin(kKnownKeys), std::end(kKnownKeys), name) == std::end(kKnownKeys))
                names.emplace_back(full);
        }
        return names;
    }

  private:
    const GgufMetadata& metadata_;
    std::string prefix_;
};

/// The values of a tensor of rank 1.
std::vector<float> vector_values(const GgufCheckpoint::Entry& entry, const std::string& path) {
    const GgufTensor& tensor = *entry.tensor;
    require(tensor.shape.rank() == 1 && tensor.type->dtype && tensor.shape[0] <= kMaxCount, ErrorKind::CorruptFile,
            "{}: tensor \"{}\" should be a short vector, not {} of {}", path, tensor.name, tensor.type->name,
            tensor.shape.to_string());
    std::vector<float> values(static_cast<size_t>(tensor.shape[0]));
    decode_gguf_row(*tensor.type, entry.data().data(), tensor.shape[0], values.data());
    return values;
}

/// True if the scaling stretches the wavelength of every pair by that pair's factor, but for rounding in float32.
bool stretches_by(const llm::RopeScaling& scaling, float theta, const std::vector<float>& factors) {
    constexpr float kTolerance = 1e-5f;  // some ten roundings of 6e-8 each, amplified by the blend's subtraction
    const auto n_rot = static_cast<int64_t>(2 * factors.size());
    const auto plain = llm::rope_frequencies(theta, n_rot, {}).inv_freq;
    const auto scaled = llm::rope_frequencies(theta, n_rot, scaling).inv_freq;
    for (size_t i = 0; i < factors.size(); ++i)
        if (!(std::fabs(factors[i] * scaled[i] / plain[i] - 1.0f) <= kTolerance)) return false;
    return true;
}

/// GGUF stores Llama 3's rope scaling as one factor per pair. Finds the settings that give these factors: the largest
/// is `factor`, and every model so far has 1 and 4 for the blend's ends and a power of two for the original context.
ordered_json llama3_scaling(const std::vector<float>& factors, float theta, int64_t head_dim, const std::string& path) {
    require(static_cast<int64_t>(factors.size()) == head_dim / 2, ErrorKind::CorruptFile,
            "{}: rope_freqs.weight has {} factors for heads of {} values", path, factors.size(), head_dim);
    llm::RopeScaling scaling;
    scaling.kind = llm::RopeScaling::Kind::Llama3;
    scaling.factor = *std::max_element(factors.begin(), factors.end());
    for (scaling.original_context = 16; scaling.original_context <= kMaxCount; scaling.original_context *= 2)
        if (stretches_by(scaling, theta, factors))
            return {{"rope_type", "llama3"},
                    {"factor", scaling.factor},
                    {"low_freq_factor", scaling.low_freq_factor},
                    {"high_freq_factor", scaling.high_freq_factor},
                    {"original_max_position_embeddings", scaling.original_context}};
    fail(ErrorKind::Unsupported,
         "{}: the factors in rope_freqs.weight are none that Llama 3's rope scaling gives; convert the original "
         "checkpoint",
         path);
}

ordered_json yarn_scaling(const HyperParameters& h, double factor) {
    h.require_usual("rope.scaling.attn_factor", 1.0);
    ordered_json scaling = {{"rope_type", "yarn"},
                            {"factor", factor},
                            {"original_max_position_embeddings",
                             h.required_integer("rope.scaling.original_context_length", 1, kMaxExtent)}};
    if (const auto beta = h.real("rope.scaling.yarn_beta_fast", 1e-6, 1e6)) scaling["beta_fast"] = *beta;
    if (const auto beta = h.real("rope.scaling.yarn_beta_slow", 1e-6, 1e6)) scaling["beta_slow"] = *beta;
    return scaling;
}

/// Null if angles are not scaled.
ordered_json rope_scaling(const GgufCheckpoint& checkpoint, const HyperParameters& h, float theta, int64_t head_dim) {
    const auto* factors = checkpoint.find("rope_freqs.weight");
    const std::string_view type = h.metadata().text(h.key("rope.scaling.type")).value_or("");
    const auto old_linear = h.real("rope.scale_linear", 1.0, 1e6);
    const auto factor = h.real("rope.scaling.factor", 0.0, 1e6);  // some write 0 for none
    if (type == "" || type == "none") {
        if (factors)
            return llama3_scaling(vector_values(*factors, checkpoint.path()), theta, head_dim, checkpoint.path());
        if (old_linear.value_or(1.0) != 1.0) return {{"rope_type", "linear"}, {"factor", *old_linear}};
        return nullptr;
    }
    require(!factors, ErrorKind::Unsupported, "{}: rope_freqs.weight beside {} \"{}\" is not supported",
            checkpoint.path(), h.key("rope.scaling.type"), type);
    require(type == "linear" || type == "yarn", ErrorKind::Unsupported,
            "{}: {} \"{}\" is not supported; this version knows none, linear and yarn", checkpoint.path(),
            h.key("rope.scaling.type"), type);
    require(factor.value_or(0.0) >= 1.0, ErrorKind::CorruptFile, "{}: {} is missing or below 1", checkpoint.path(),
            h.key("rope.scaling.factor"));
    if (type == "linear") return {{"rope_type", "linear"}, {"factor", *factor}};
    return yarn_scaling(h, *factor);
}

/// What would change the computation in a way that the family's config.json cannot say.
void refuse_variants(const HyperParameters& h) {
    const std::string& path = h.metadata().path();
    const int64_t n_expert = h.integer("expert_count", 0, kMaxCount).value_or(0);
    require(n_expert == 0, ErrorKind::Unsupported, "{}: {} is {}; Mixture-of-Experts models are not supported yet",
            path, h.key("expert_count"), n_expert);
    require(h.metadata().boolean(h.key("attention.causal")).value_or(true), ErrorKind::Unsupported,
            "{}: {} is false: attention in both directions is not supported", path, h.key("attention.causal"));
    for (const char* name : {"embedding_scale", "residual_scale", "logit_scale"}) h.require_usual(name, 1.0);
    h.require_usual("attention.scale", 0.0);
}

int64_t head_dim_of(const HyperParameters& h, int64_t n_embd, int64_t n_head) {
    const auto key_length = h.integer("attention.key_length", 1, kMaxCount);
    require(key_length || n_embd % n_head == 0, ErrorKind::CorruptFile,
            "{}: {} is no multiple of the {} heads, and there is no {}", h.metadata().path(), h.key("embedding_length"),
            n_head, h.key("attention.key_length"));
    const int64_t head_dim = key_length ? *key_length : n_embd / n_head;
    for (const char* name : {"attention.value_length", "rope.dimension_count"})
        require(h.integer(name, 0, kMaxCount).value_or(head_dim) == head_dim, ErrorKind::Unsupported,
                "{}: {} is {}, but heads have {} values; other than equal is not supported", h.metadata().path(),
                h.key(name), h.integer(name, 0, kMaxCount).value_or(0), head_dim);
    return head_dim;
}

/// Hugging Face calls a Llama with a sliding window Mistral.
void add_window(const HyperParameters& h, ordered_json& config) {
    const int64_t window = h.integer("attention.sliding_window", 0, kMaxExtent).value_or(0);
    if (window == 0) return;
    require(config["model_type"] == "llama", ErrorKind::Unsupported,
            "{}: {} is {}, but GGUF does not say for which layers; convert the original checkpoint",
            h.metadata().path(), h.key("attention.sliding_window"), window);
    config["model_type"] = "mistral";
    config["sliding_window"] = window;
}

int64_t vocab_size(const GgufCheckpoint& checkpoint) {
    const auto* embedding = checkpoint.find("token_embd.weight");
    require(embedding && embedding->tensor->shape.rank() == 2, ErrorKind::CorruptFile,
            "{} has no matrix token_embd.weight", checkpoint.path());
    return embedding->tensor->shape[0];
}

}  // namespace

const GgufFamily& gguf_family(const GgufMetadata& metadata) {
    const std::string_view architecture = metadata.required_text("general.architecture");
    std::string known;
    for (const GgufFamily& family : kFamilies) {
        if (family.architecture == architecture) return family;
        known += (known.empty() ? "" : ", ") + std::string(family.architecture);
    }
    fail(ErrorKind::Unsupported, "{}: the architecture \"{}\" is not supported; this version reads GGUF files of {}",
         metadata.path(), architecture, known);
}

std::string gguf_config_json(const GgufCheckpoint& checkpoint, std::vector<std::string>& notes) {
    const HyperParameters h(checkpoint.metadata());
    const GgufFamily& family = gguf_family(checkpoint.metadata());
    refuse_variants(h);
    const int64_t n_embd = h.required_integer("embedding_length", 1, kMaxExtent);
    const int64_t n_head = h.required_integer("attention.head_count", 1, kMaxCount);
    const int64_t head_dim = head_dim_of(h, n_embd, n_head);
    const double theta = h.real("rope.freq_base", 1.0, 1e12).value_or(10000.0);
    const auto epsilon = h.real("attention.layer_norm_rms_epsilon", 0.0, 1.0);
    require(epsilon.has_value(), ErrorKind::CorruptFile, "{} has no {}", checkpoint.path(),
            h.key("attention.layer_norm_rms_epsilon"));

    ordered_json config = {{"model_type", family.model_type}};
    config["vocab_size"] = vocab_size(checkpoint);
    config["hidden_size"] = n_embd;
    config["intermediate_size"] = h.required_integer("feed_forward_length", 1, kMaxExtent);
    config["num_hidden_layers"] = h.required_integer("block_count", 1, kMaxLayers);
    config["num_attention_heads"] = n_head;
    config["num_key_value_heads"] = h.integer("attention.head_count_kv", 1, kMaxCount).value_or(n_head);
    config["head_dim"] = head_dim;
    config["hidden_act"] = "silu";
    config["max_position_embeddings"] = h.required_integer("context_length", 1, kMaxExtent);
    config["rms_norm_eps"] = *epsilon;
    config["rope_theta"] = theta;
    config["rope_scaling"] = rope_scaling(checkpoint, h, static_cast<float>(theta), head_dim);
    config["attention_bias"] = checkpoint.find("blk.0.attn_q.bias") != nullptr;
    config["mlp_bias"] = checkpoint.find("blk.0.ffn_gate.bias") != nullptr;
    config["tie_word_embeddings"] = checkpoint.find("output.weight") == nullptr;
    add_window(h, config);
    for (const std::string& key : h.unknown())
        notes.push_back(fmt::format("warning: {} is not known to this version and was not used", key));
    return config.dump(2) + "\n";
}

std::string gguf_generation_config_json(const GgufMetadata& metadata) {
    ordered_json config = ordered_json::object();
    const GgufSpecialIds ids = gguf_special_ids(metadata);
    if (ids.bos) config["bos_token_id"] = *ids.bos;
    if (!ids.ends.empty()) config["eos_token_id"] = ids.ends;
    const auto copy = [&](const char* name, const char* key, double min, double max) {
        if (const auto value = metadata.real(std::string("general.sampling.") + key, min, max)) config[name] = *value;
    };
    copy("temperature", "temp", 0.0, 1e6);
    copy("top_p", "top_p", 0.0, 1.0);
    copy("min_p", "min_p", 0.0, 1.0);
    copy("repetition_penalty", "penalty_repeat", 1e-6, 1e6);
    if (const auto top_k = metadata.integer("general.sampling.top_k", 0, kMaxExtent)) config["top_k"] = *top_k;
    if (config.contains("temperature")) config["do_sample"] = config["temperature"] > 0.0;
    return config.dump(2) + "\n";
}

}  // namespace convert
