#pragma once
// Post-processors: the ids that belong before and after a text (BOS, EOS). TemplateProcessing, ByteLevel (adds none),
// Sequence.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "src/tokenizer/tokenizer.h"

namespace llm {

struct SpecialFrame {
    std::vector<TokenId> before, after;
};

/// From tokenizer.json's "post_processor" (null: nothing to add). Throws unsupported for a type that is not listed
/// above.
SpecialFrame parse_post_processor(const nlohmann::json& json);

}  // namespace llm
