#pragma once
// The header of a GGUF file, read from front to back.

#include <vector>

#include "convert/gguf/file.h"

namespace convert {

/// Fills the metadata, whose path leads every message, and returns the tensors in file order. All of them lie within
/// `bytes`, aligned and apart; names may still occur twice. Throws as GgufFile::open does.
std::vector<GgufTensor> parse_gguf_header(std::span<const std::byte> bytes, GgufMetadata& metadata);

}  // namespace convert
