#pragma once
// GGUF metadata -> tokenizer.json and tokenizer_config.json, which say the same in Hugging Face's vocabulary.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convert/gguf/metadata.h"

namespace convert {

/// Token ids with a part to play.
struct GgufSpecialIds {
    std::optional<int64_t> bos, eos, unknown, padding;
    /// All that end an answer: eos, eot, eom, and what the chat template writes after every turn though no key says so
    /// (a control token with one of the well-known spellings: "<|im_end|>" …).
    std::vector<int64_t> ends;
};
/// Throws corrupt_file for an id that ends an answer or begins a text and has no token.
GgufSpecialIds gguf_special_ids(const GgufMetadata& metadata);

/// Empty if the file has no tokenizer. Throws corrupt_file for lists that do not fit together, doubled tokens and text
/// that is not UTF-8; unsupported for other models than "gpt2" (byte-level BPE) and "llama" (SentencePiece's BPE) and
/// for a rule of cutting words that is not known.
std::string gguf_tokenizer_json(const GgufMetadata& metadata, std::vector<std::string>& notes);

/// Special tokens by their text, whether BOS and EOS are added, and the chat templates.
std::string gguf_tokenizer_config_json(const GgufMetadata& metadata);

}  // namespace convert
