// Rows of a table of any weight type as float32, for embeddings.

#include "ggmlx/backend/cuda/kernels/decode.cuh"
#include "ggmlx/backend/cuda/ops.h"

namespace ggmlx::cuda {
namespace {

/// Value k (0..31) of sub-block `sub` of row r, as blocks.h value() gives it.
template <class Tile>
__device__ float tile_value(const Tile& t, int sub, int r, int k) {
    constexpr DType kType = Tile::kType;
    const int within = k & 15, half = k >> 4, j = within & 3;
    if constexpr (kType == DType::MXFP8) {
        return e8m0_to_float(t.e[r]) * e4m3_to_float(t.q[k >> 2][r][k & 3]);
    } else {
        const WordPair words = read_words(t, sub, within >> 2, r);
        const RowScale s = read_scale(t, sub, r);
        const bool from_high = kInterleaved<Tile> ? j >= 2 : half == 1;
        const int byte = kInterleaved<Tile> ? 2 * (j & 1) + half : j;
        const auto code = static_cast<int8_t>((from_high ? words.high : words.low) >> (8 * byte));
        int q = code;
        if constexpr (kType == DType::Q4_0) q -= 8;
        if constexpr (kType == DType::Q6_K)
            return s.scale * static_cast<float>(half ? s.high : s.low) * static_cast<float>(q - 32);
        const float v = s.scale * static_cast<float>(q);
        return kType == DType::Q4_1 || kType == DType::Q4_K ? v - s.minimum : v;
    }
}

/// Reads one value of a row.
template <class T>
struct PlainTable {
    const T* data;
    int64_t n_in;
    __device__ float value(int64_t row, int64_t k) const { return static_cast<float>(data[row * n_in + k]); }
};
template <class Tile>
struct TileTable {
    const Tile* tiles;
    int64_t n_tiles_in_row;
    __device__ float value(int64_t row, int64_t k) const {
        constexpr int kBlock = 32 * kSubBlocks<Tile>;
        const Tile& t = tiles[row / 16 * n_tiles_in_row + k / kBlock];
        return tile_value(t, static_cast<int>(k % kBlock / 32), static_cast<int>(row % 16), static_cast<int>(k % 32));
    }
};

template <class Table>
__global__ void get_rows_kernel(Table table, int64_t n_rows, int64_t n_in, const int32_t* ids, float* y,
                                StatusWord* status) {
    const int32_t id = ids[blockIdx.x];
    const bool is_row = id >= 0 && id < n_rows;
    if (!is_row && id != -1 && threadIdx.x == 0 && blockIdx.y == 0) report(status, Fault::BadIndex, blockIdx.x);
    for (int64_t k = blockIdx.y * static_cast<int64_t>(blockDim.x) + threadIdx.x; k < n_in;
         k += static_cast<int64_t>(gridDim.y) * blockDim.x)
        y[blockIdx.x * n_in + k] = is_row ? table.value(id, k) : 0.0f;
}

}  // namespace

void get_rows(const OpCall& call, const Launch& launch) {
    const TensorView& w = call.in[0];
    const int64_t n_in = w.shape[1], n = call.in[1].shape[0];
    if (n == 0 || n_in == 0) return;
    constexpr int kThreads = 256;
    const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(ceil_div(n_in, 4 * kThreads)));
    const auto start = [&](auto table) {
        get_rows_kernel<<<grid, kThreads, 0, launch.stream>>>(table, w.shape[0], n_in, call.in[1].as<const int32_t>(),
                                                              call.out[0].as<float>(), status_word(call));
    };
    const auto tiles = [&]<class Tile>(const Tile* data) {
        start(TileTable<Tile>{data, ceil_div(n_in, 32 * kSubBlocks<Tile>)});
    };
    switch (w.dtype) {
        case DType::F32:
            return start(PlainTable<float>{w.as<const float>(), n_in});
        case DType::F16:
            return start(PlainTable<__half>{w.as<const __half>(), n_in});
        case DType::BF16:
            return start(PlainTable<__nv_bfloat16>{w.as<const __nv_bfloat16>(), n_in});
        case DType::Q8_0:
            return tiles(w.as<const TileQ8_0>());
        case DType::Q4_0:
            return tiles(w.as<const TileQ4_0>());
        case DType::Q4_1:
            return tiles(w.as<const TileQ4_1>());
        case DType::Q4_K:
            return tiles(w.as<const TileQ4_K>());
        case DType::Q6_K:
            return tiles(w.as<const TileQ6_K>());
        case DType::MXFP4:
            return tiles(w.as<const TileMXFP4>());
        case DType::MXFP8:
            return tiles(w.as<const TileMXFP8>());
        default:
            return;  // supports() lets nothing else through
    }
}

}  // namespace ggmlx::cuda
