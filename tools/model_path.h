#pragma once
// Paths that users give for models: opening a .ggmx, with advice when it is something else.

#include <string>

#include "ggmlx/file/reader.h"

namespace cli {

/// ModelFile::open, but a folder gives an error that names the command for it.
ggmlx::ModelFile open_model(const std::string& path);

/// True if the file begins with the magic of a .ggmx.
bool is_model_file(const std::string& path);

}  // namespace cli
