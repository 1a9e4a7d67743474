#pragma once
// A GGUF model as a source of conversions. Its tensors have our names already; blocks of our types are moved into tiles
// without rounding, all others come as float32 rows.

#include <memory>
#include <string>

#include "convert/source.h"

namespace convert {

/// path: the file, of several parts the first one. Throws as GgufCheckpoint::open, gguf_config_json and
/// gguf_tokenizer_json do.
std::unique_ptr<Source> open_gguf_source(const std::string& path);

}  // namespace convert
