#pragma once
// What a file that is no .ggmx might be: people meet the error of a wrong file more often than that of a broken one.

#include <cstddef>
#include <span>
#include <string>

namespace ggmlx {

/// A clause for an error message, such as "it looks like a GGUF file: convert it with `ggmlx convert`".
std::string describe_foreign_file(std::span<const std::byte> bytes);

}  // namespace ggmlx
