#pragma once
// tekken.json, Mistral's tokenizer: byte-level BPE by ranks, with the expression and the number of special tokens.
// Special tokens come first, so a token's id is its rank plus their number. Source:
// https://github.com/mistralai/mistral-common, src/mistral_common/tokens/tokenizers/tekken.py

#include <string_view>

#include "convert/tokenizer/ranked_tokens.h"

namespace convert {

/// Throws corrupt_file, naming the field.
RankedTokens read_tekken(std::string_view json);

}  // namespace convert
