#pragma once
// What the instruction that configures AMX's tile registers reads.

#include <cstdint>

namespace ggmlx {

/// Rows and bytes per row of each tile register; whole ones unless said otherwise.
struct alignas(64) AmxShapes {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(AmxShapes) == 64);

}  // namespace ggmlx
