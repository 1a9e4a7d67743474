#pragma once
// Counts what this test program allocates.

#include <cstddef>

namespace ggmlx::test {

/// Bytes allocated by this thread since it was last set to 0.
inline thread_local size_t allocated_bytes = 0;

}  // namespace ggmlx::test
