#pragma once
// Text that comes in pieces: how much of what has come may still become a string that is looked for.

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace ggmlx {

/// Bytes at the end of `text` that `wanted` (not empty) begins with, without being all of it. They must be held back
/// until more text decides.
inline size_t begun_bytes(std::string_view text, std::string_view wanted) {
    for (size_t n = std::min(wanted.size() - 1, text.size()); n > 0; --n)
        if (text.ends_with(wanted.substr(0, n))) return n;
    return 0;
}

}  // namespace ggmlx
