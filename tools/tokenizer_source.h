#pragma once
// Where a tokenizer comes from when no model is needed.

#include <string>

#include "src/tokenizer/tokenizer.h"

namespace cli {

/// From a .ggmx, a checkpoint folder, or a tokenizer file: tokenizer.json, or one of the forms that convert/ makes one
/// of (tokenizer.model, tekken.json …), with its neighbours in the folder.
llm::Tokenizer open_tokenizer(const std::string& path);

}  // namespace cli
