#pragma once
// Where a chat template comes from: a model file, a checkpoint's folder, a tokenizer_config.json or a template alone.

#include <string>

#include "ggmlx/file/reader.h"
#include "src/chat/chat.h"

namespace cli {

llm::ChatFiles chat_files(const ggmlx::ModelFile& file);

/// source: a .ggmx, a folder with tokenizer_config.json or chat_template.jinja, one of these files, or any .jinja file
/// (special tokens then come from a tokenizer_config.json beside it, if there is one). Throws io for what cannot be
/// read, unsupported if there is no template.
llm::ChatFormat open_chat_format(const std::string& source);

}  // namespace cli
