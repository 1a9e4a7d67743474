#pragma once
// What tokenizer.ggml.pre stands for. A GGUF file holds a byte-level tokenizer's vocabulary and merges, but of the rule
// that cuts text into words only a name.

#include <nlohmann/json.hpp>
#include <string_view>

namespace convert {

/// The parts of a tokenizer.json that the name decides.
struct GgufPretokenizer {
    nlohmann::json normalizer;   ///< null: none
    nlohmann::json rule;         ///< pre_tokenizer
    bool ignore_merges = false;  ///< a word that is in the vocabulary is one token, whatever the merges say
    bool add_bos = false;        ///< if the file does not say
};

/// Throws unsupported, listing the known names: a guess would give wrong tokens without any sign of it. `path` leads
/// the message.
GgufPretokenizer gguf_pretokenizer(std::string_view pre, std::string_view path);

}  // namespace convert
