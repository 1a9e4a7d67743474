#pragma once
// The type ids alone. No inline function is reachable from here, so code compiled for one instruction set or device may
// include it.

#include <cstdint>

namespace ggmlx {

/// The values are the type ids of the file format; never renumber.
enum class DType : uint8_t {
    F32 = 0,
    F16 = 1,
    BF16 = 2,
    I32 = 3,
    Q8_0 = 4,
    Q4_0 = 5,
    Q4_1 = 6,
    Q4_K = 7,
    Q6_K = 8,
    MXFP4 = 9,
    MXFP8 = 10,
    F8_E4M3 = 11,  ///< plain bytes, for caches; not a weight type
};
inline constexpr int kDTypeCount = 12;

/// Rows that stand side by side in one tile of a block type.
inline constexpr int64_t kTileRows = 16;

}  // namespace ggmlx
