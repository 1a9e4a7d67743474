#pragma once
// Normalizers: text -> text before it is cut into pieces. NFC NFD NFKC NFKD, Prepend, Replace, Strip, Lowercase,
// Precompiled, Sequence.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/tokenizer/trust.h"

namespace llm {

/// A text on its way through the normalizers.
struct NormalText {
    std::string text;  ///< valid UTF-8
    Trust trust = Trust::all();
};

/// Changes a text in place. May be called from any thread. Empty: there is no normalizer.
using Normalizer = std::function<void(NormalText& text)>;

/// From tokenizer.json's "normalizer" (null: an empty function). Throws unsupported for a type that is not listed
/// above.
Normalizer parse_normalizer(const nlohmann::json& json);

}  // namespace llm
