#pragma once
// GGUF metadata -> config.json and generation_config.json in Hugging Face's vocabulary.

#include <string>
#include <string_view>
#include <vector>

#include "convert/gguf/checkpoint.h"

namespace convert {

/// What general.architecture means here.
struct GgufFamily {
    std::string_view architecture;  ///< in GGUF
    std::string_view model_type;    ///< in config.json
    /// The rows of attn_q and attn_k, and their biases, are in the order of rotary pairs (2i, 2i + 1) within each head,
    /// not (i, i + head_dim / 2) as in Hugging Face's checkpoints.
    bool interleaved_rope = false;
};
/// Throws unsupported, listing the known ones.
const GgufFamily& gguf_family(const GgufMetadata& metadata);

/// Throws corrupt_file for missing, contradicting or impossible hyper-parameters and unsupported for those that no
/// config.json of the family can say; both name the key. Notes for the user are appended: keys that were not
/// understood.
std::string gguf_config_json(const GgufCheckpoint& checkpoint, std::vector<std::string>& notes);

/// BOS, every token that ends an answer, and the sampling settings that the file recommends.
std::string gguf_generation_config_json(const GgufMetadata& metadata);

}  // namespace convert
