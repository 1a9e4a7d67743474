#pragma once
// Normalizers: text -> text before it is cut into pieces. NFC NFD NFKC NFKD, Prepend, Replace, Strip, Lowercase,
// Sequence.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace llm {

/// May be called from any thread; text is valid UTF-8. Empty: there is no normalizer.
using Normalizer = std::function<std::string(std::string text)>;

/// From tokenizer.json's "normalizer" (null: an empty function). Throws unsupported for a type that is not listed
/// above.
Normalizer parse_normalizer(const nlohmann::json& json);

}  // namespace llm
