#pragma once
// The tokenizer of a checkpoint, whichever files it comes in, as the text of a tokenizer.json.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace convert {

/// A file of the checkpoint's folder, whole, by its name; nothing if it is not there.
using ReadFile = std::function<std::optional<std::string>(std::string_view name)>;

/// The first of these that is there: tokenizer.json, as it is; tekken.json; tokenizer.model or spiece.model;
/// tiktoken.model, or o200k_base.tiktoken. What is not tokenizer.json is converted, with the help
/// of tokenizer_config.json, added_tokens.json and, for tiktoken.model, the expression in the checkpoint's own Python
/// module. Nothing if none is there. Throws corrupt_file, and unsupported for rules that these files do not tell.
std::optional<std::string> tokenizer_document(const ReadFile& read);

/// The same for one file, which `name` tells the kind of ("tokenizer.model"); read gives its neighbours.
std::string tokenizer_document(std::string_view name, std::string_view bytes, const ReadFile& read);

}  // namespace convert
