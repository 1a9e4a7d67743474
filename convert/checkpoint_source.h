#pragma once
// A Hugging Face checkpoint as a source of conversions.

#include <memory>
#include <string>

#include "convert/source.h"

namespace convert {

/// Throws as Checkpoint::open, collect_documents and scale_block_of do.
std::unique_ptr<Source> open_checkpoint_source(const std::string& path);

}  // namespace convert
