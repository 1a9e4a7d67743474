#pragma once
// Element and block types: spelling, block length, bytes. One table row per type; nothing else in the project knows
// these numbers.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ggmlx/core/dtype_id.h"
#include "ggmlx/core/shape.h"

namespace ggmlx {

struct DTypeInfo {
    DType dtype;
    std::string_view name;  ///< the one spelling: lower case, "q4_k"
    int64_t block_len;      ///< values along a row that share scales; 1 for plain types
    int64_t block_bytes;    ///< bytes of one block of one row; a tile has kTileRows times as many
    bool is_block;          ///< stored in tiles of kTileRows rows (quant/blocks.h)
    DType fallback;  ///< the block type used where block_len does not suit a row's length; itself if none is needed

    int64_t tile_bytes() const { return block_bytes * kTileRows; }
    double bits_per_value() const { return 8.0 * static_cast<double>(block_bytes) / static_cast<double>(block_len); }
};

/// Throws invalid_argument for a value that is no DType.
const DTypeInfo& info(DType dtype);
inline std::string_view name(DType dtype) { return info(dtype).name; }
inline bool is_block(DType dtype) { return info(dtype).is_block; }

/// By id (of a file) or by name (any case; also llama.cpp's q4_k_m / q4_k_s for q4_k); nothing if there is no such
/// type.
std::optional<DType> dtype_from_id(uint32_t id);
std::optional<DType> dtype_from_name(std::string_view name);
/// "f32, f16, …": for error messages.
std::string all_dtype_names();

/// Types that cached keys and values can have; kCacheTypeNames lists them for messages.
bool is_cache_type(DType dtype);
inline constexpr std::string_view kCacheTypeNames = "f32, f16, bf16, f8_e4m3, q8_0";
/// Bytes of a cache row of n values: rows lie one after the other, also those of a block type (RowQ8_0 of
/// quant/tiles.h), whose last block is padded.
int64_t cache_row_bytes(DType dtype, int64_t n);

/// How a [n_out, n_in] matrix (or one expert's slice) of a block type is cut into tiles: row tiles outermost, then K
/// blocks.
struct TileGrid {
    int64_t n_row_tiles = 0;  ///< ceil(n_out / 16)
    int64_t n_k_blocks = 0;   ///< ceil(n_in / block_len)
};
TileGrid tile_grid(DType dtype, int64_t n_out, int64_t n_in);

/// Bytes of a tensor as stored, tiles' padding included, experts of a stacked block tensor packed without gaps.
/// Block types need rank >= 2, or throw invalid_argument. Throws invalid_argument too when the size exceeds 2^62 bytes.
int64_t storage_bytes(DType dtype, const Shape& shape);

/// Bytes of one slice [n_out, n_in] of a stacked tensor [n_expert, n_out, n_in] (or of the whole matrix at rank 2).
int64_t slice_bytes(DType dtype, const Shape& shape);

}  // namespace ggmlx
