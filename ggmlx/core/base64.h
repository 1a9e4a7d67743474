#pragma once
// Base64 (RFC 4648, section 4): how tokenizer files write bytes.

#include <optional>
#include <string>
#include <string_view>

namespace ggmlx {

std::string to_base64(std::string_view bytes);

/// The bytes of a text in base64, with its padding or without; nothing if it is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace ggmlx
