#pragma once
// The JSON header of a .safetensors file, read as a stream of events so that duplicate names are seen and depth is
// bounded.

#include <string>
#include <string_view>
#include <vector>

#include "convert/safetensors.h"

namespace convert {

/// Entries in file order, offsets as written (from the end of the header), sizes not yet compared with anything.
/// Throws corrupt_file; `path` leads the message.
std::vector<SourceTensor> parse_safetensors_header(std::string_view json, const std::string& path);

}  // namespace convert
