#pragma once
// GGUF blocks -> the tiles of quant/tiles.h: the same values, moved to other places. Nothing is rounded.
// A GGUF block holds consecutive values of one row; a tile holds the blocks of 16 rows side by side.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "ggmlx/quant/tiles.h"

namespace convert {

/// Puts one block into row r of a tile, whose other rows stay. The block's bytes may lie at any address. False, with
/// the tile in any state, if a scale is not finite (for MXFP4: so large that a value could be infinite).
[[nodiscard]] bool pack_block(const std::byte* block, ggmlx::TileQ8_0& tile, int r);
[[nodiscard]] bool pack_block(const std::byte* block, ggmlx::TileQ4_0& tile, int r);
[[nodiscard]] bool pack_block(const std::byte* block, ggmlx::TileQ4_1& tile, int r);
[[nodiscard]] bool pack_block(const std::byte* block, ggmlx::TileQ4_K& tile, int r);
[[nodiscard]] bool pack_block(const std::byte* block, ggmlx::TileQ6_K& tile, int r);
[[nodiscard]] bool pack_block(const std::byte* block, ggmlx::TileMXFP4& tile, int r);

/// One [n_out, n_in] matrix of a block type that GGUF has too.
struct PackJob {
    std::string name;  ///< for messages
    ggmlx::DType dtype = ggmlx::DType::Q8_0;
    int64_t n_out = 0, n_in = 0;
    int64_t block_bytes = 0;                           ///< of a GGUF block of that type
    std::function<const std::byte*(int64_t row)> row;  ///< where a row's blocks begin; called from several threads
};

/// Fills dst, slice_bytes(dtype, {n_out, n_in}) bytes, with up to n_threads threads (0: all). Throws corrupt_file,
/// naming tensor, row and column, for a scale that is not finite.
void pack_matrix(const PackJob& job, std::span<std::byte> dst, int n_threads);

}  // namespace convert
