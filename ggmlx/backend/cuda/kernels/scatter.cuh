#pragma once
// Many small pieces from pinned host memory to where a step wants them, in one launch.

#include "ggmlx/backend/cuda/call_args.h"

namespace ggmlx::cuda {

struct Piece {
    std::byte* to;
    const std::byte* from;  ///< host memory that the device reaches
    uint64_t size_bytes;    ///< a multiple of 4
};
/// `pieces` lies in such memory too.
void scatter(const Piece* pieces, int n_pieces, const Launch& launch);

/// Reads memory and keeps nothing: what no kernel can beat. sink: one word of device memory.
void read_all(const std::byte* data, size_t size_bytes, uint32_t* sink, const Launch& launch);

}  // namespace ggmlx::cuda
