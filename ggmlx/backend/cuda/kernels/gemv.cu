// Products of few columns. A warp takes a tile of 16 rows: a lane is one of the eight partial sums (blocks b with b mod
// 8 = p) of four rows, so a warp reads eight K blocks side by side in 16-byte pieces. The partial sums meet at the end
// by shuffles, pairwise as reference.h has it. Bytes bound it: every weight is read once.

#include <algorithm>

#include "ggmlx/backend/cuda/kernels/products.cuh"

namespace ggmlx::cuda {
namespace {

constexpr int kRows = 16;

/// The eight partial sums of lanes p = lane / 4, pairwise: (0+4, 1+5, 2+6, 3+7), then +2, then +1.
__device__ inline float reduce_partials(float v) {
    v += __shfl_xor_sync(kAllLanes, v, 16);
    v += __shfl_xor_sync(kAllLanes, v, 8);
    v += __shfl_xor_sync(kAllLanes, v, 4);
    return v;
}

/// v[i] summed over the four lanes of a quad: lane g gets the sum of all v[g].
__device__ inline int scatter_sum(const int (&v)[4], int g) {
    const unsigned quad = 0xfu << (threadIdx.x & 28);  // other quads may have fewer blocks
    const bool upper = g & 2, odd = g & 1;
    const int a = (upper ? v[2] : v[0]) + __shfl_xor_sync(quad, upper ? v[0] : v[2], 2);
    const int b = (upper ? v[3] : v[1]) + __shfl_xor_sync(quad, upper ? v[1] : v[3], 2);
    return (odd ? b : a) + __shfl_xor_sync(quad, odd ? a : b, 1);
}

template <int kColumns>
__device__ inline void store_tile(const FewColumns& args, int64_t product, int64_t slot, int64_t first_row,
                                  const float (&sums)[kColumns][4]) {
    const int q = threadIdx.x & 3;
    for (int c = 0; c < kColumns; ++c)
        for (int i = 0; i < 4; ++i) {
            const float sum = reduce_partials(sums[c][i]);
            const int64_t row = first_row + 4 * q + i;
            if ((threadIdx.x & 31) >= 4 || row >= args.m.n_out || c >= args.n_columns) continue;
            const float bias = args.m.bias ? args.m.bias[slot * args.m.bias_stride + row] : 0.0f;
            args.y[product * args.y_stride + c * args.y_column_stride + row] = args.m.bias ? sum + bias : sum;
        }
}

template <int kColumns>
__device__ inline void store_zeros(const FewColumns& args, int64_t product, int64_t first_row) {
    const int lane = threadIdx.x & 31;
    for (int c = 0; c < args.n_columns; ++c)
        if (lane < kRows && first_row + lane < args.m.n_out)
            args.y[product * args.y_stride + c * args.y_column_stride + first_row + lane] = 0.0f;
}

template <class Tile, int kColumns>
__global__ void integer_kernel(FewColumns args) {
    const int64_t row_tile = blockIdx.x * static_cast<int64_t>(blockDim.x / kWarp) + threadIdx.x / kWarp;
    const int64_t product = args.first_product + blockIdx.y;
    if (row_tile * kRows >= args.m.n_out) return;
    const int64_t slot = find_slot(args.m, product);
    if (slot < 0) return store_zeros<kColumns>(args, product, row_tile * kRows);
    constexpr int kSub = kSubBlocks<Tile>;
    const int p = (threadIdx.x & 31) >> 2, q = threadIdx.x & 3;
    const int64_t n_blocks = args.a.n_blocks;
    const Tile* tiles =
        reinterpret_cast<const Tile*>(args.m.data + slot * args.m.stride) + row_tile * (n_blocks / kSub);
    const int64_t group = product / args.x_divisor;
    float sums[kColumns][4] = {};
#pragma unroll 2
    for (int64_t b = p; b < n_blocks; b += 8) {
        const Tile& tile = tiles[b / kSub];
        const int sub = kSub > 1 ? p : 0;
        FourRows<Tile> rows;
        rows.load(tile, sub, q);
        RowScale scales[4];
        for (int i = 0; i < 4; ++i) scales[i] = read_scale(tile, sub, 4 * q + i);
        const int64_t index = args.a.block_index(group, b) * args.a.width;
        for (int c = 0; c < kColumns; ++c) {
            const auto* words = reinterpret_cast<const int4*>(args.a.q + (index + c) * 32);
            const int4 w0 = words[0], w1 = words[1];
            const int x[8] = {w0.x, w0.y, w0.z, w0.w, w1.x, w1.y, w1.z, w1.w};  // [g][half]
            const ActivationMeta meta = args.a.meta[index + c];
            for (int i = 0; i < 4; ++i) {
                int low = 0, high = 0;
                for (int g = 0; g < 4; ++g) {
                    const WordPair pair = rows.pair(g, i);
                    low = __dp4a(pair.low, x[2 * g], low);
                    high = __dp4a(pair.high, x[2 * g + 1], high);
                }
                sums[c][i] = add_block<Tile>(sums[c][i], low, high, scales[i], meta);
            }
        }
    }
    store_tile<kColumns>(args, product, slot, row_tile * kRows, sums);
}

/// The same with four warps for a tile, each for four of its rows: for matrices so small that a warp's own
/// instructions, not the memory, would take the time. A lane is one partial sum and one group of four k; the integer
/// sums of the four groups meet by shuffles, after which each lane has one row.
template <class Tile, int kColumns>
__global__ void split_integer_kernel(FewColumns args) {
    const int64_t unit = blockIdx.x * static_cast<int64_t>(blockDim.x / kWarp) + threadIdx.x / kWarp;
    const int64_t row_tile = unit / 4, product = args.first_product + blockIdx.y;
    if (row_tile * kRows >= args.m.n_out) return;
    const int64_t slot = find_slot(args.m, product);
    const int quarter = static_cast<int>(unit % 4), p = (threadIdx.x & 31) >> 2, g = threadIdx.x & 3;
    const int64_t row = row_tile * kRows + 4 * quarter + g;
    constexpr int kSub = kSubBlocks<Tile>;
    const int64_t n_blocks = args.a.n_blocks;
    float sums[kColumns] = {};
    if (slot >= 0) {
        const Tile* tiles =
            reinterpret_cast<const Tile*>(args.m.data + slot * args.m.stride) + row_tile * (n_blocks / kSub);
        const int64_t group = product / args.x_divisor;
#pragma unroll 4
        for (int64_t b = p; b < n_blocks; b += 8) {
            const Tile& tile = tiles[b / kSub];
            const int sub = kSub > 1 ? p : 0;
            const GroupOfRows<Tile> rows(tile, sub, g, quarter);
            const RowScale scale = read_scale(tile, sub, 4 * quarter + g);
            const int64_t index = args.a.block_index(group, b) * args.a.width;
            for (int c = 0; c < kColumns; ++c) {
                const int2 x = *reinterpret_cast<const int2*>(args.a.q + (index + c) * 32 + 8 * g);
                const ActivationMeta meta = args.a.meta[index + c];
                int low[4], high[4];
                for (int i = 0; i < 4; ++i) {
                    const WordPair pair = rows.pair(i);
                    low[i] = __dp4a(pair.low, x.x, 0);
                    high[i] = __dp4a(pair.high, x.y, 0);
                    if constexpr (Tile::kType != DType::Q6_K) low[i] += high[i];
                }
                const int low_sum = scatter_sum(low, g);
                const int high_sum = Tile::kType == DType::Q6_K ? scatter_sum(high, g) : 0;
                sums[c] = add_block<Tile>(sums[c], low_sum, high_sum, scale, meta);
            }
        }
    }
    for (int c = 0; c < kColumns; ++c) {
        const float sum = reduce_partials(sums[c]);
        if ((threadIdx.x & 31) >= 4 || row >= args.m.n_out || c >= args.n_columns) continue;
        float result = slot >= 0 ? sum : 0.0f;
        if (args.m.bias && slot >= 0) result = result + args.m.bias[slot * args.m.bias_stride + row];
        args.y[product * args.y_stride + c * args.y_column_stride + row] = result;
    }
}

/// MXFP8: the same walk over floats, k increasing within a block.
template <int kColumns>
__global__ void mxfp8_kernel(FewColumns args) {
    const int64_t row_tile = blockIdx.x * static_cast<int64_t>(blockDim.x / kWarp) + threadIdx.x / kWarp;
    const int64_t product = args.first_product + blockIdx.y;
    if (row_tile * kRows >= args.m.n_out) return;
    const int64_t slot = find_slot(args.m, product);
    if (slot < 0) return store_zeros<kColumns>(args, product, row_tile * kRows);
    const int p = (threadIdx.x & 31) >> 2, q = threadIdx.x & 3;
    const int64_t n_in = args.m.n_in, n_blocks = (n_in + 31) / 32;
    const auto* tiles = reinterpret_cast<const TileMXFP8*>(args.m.data + slot * args.m.stride) + row_tile * n_blocks;
    const float* x = args.x + product / args.x_divisor * args.x_stride;
    float sums[kColumns][4] = {};
    for (int64_t b = p; b < n_blocks; b += 8) {
        float scales[4];
        for (int i = 0; i < 4; ++i) scales[i] = e8m0_to_float(tiles[b].e[4 * q + i]);
#pragma unroll
        for (int g = 0; g < 8; ++g) {
            const int4 v = __ldcs(reinterpret_cast<const int4*>(tiles[b].q[g]) + q);
            const int words[4] = {v.x, v.y, v.z, v.w};
            for (int j = 0; j < 4; ++j) {
                const int64_t k = 32 * b + 4 * g + j;
                for (int c = 0; c < kColumns; ++c) {
                    const float xk = k < n_in && c < args.n_columns ? x[c * args.x_column_stride + k] : 0.0f;
                    for (int i = 0; i < 4; ++i) {
                        const auto code = static_cast<uint8_t>(static_cast<unsigned>(words[i]) >> (8 * j));
                        sums[c][i] = __fmaf_rn(scales[i] * e4m3_to_float(code), xk, sums[c][i]);
                    }
                }
            }
        }
    }
    store_tile<kColumns>(args, product, slot, row_tile * kRows, sums);
}

__device__ inline float to_float(float v) { return v; }
__device__ inline float to_float(__half v) { return __half2float(v); }
__device__ inline float to_float(__nv_bfloat16 v) { return __bfloat162float(v); }

/// Plain rows: a warp per row, 16 bytes a lane where rows allow it.
template <class T, int kColumns>
__global__ void plain_kernel(FewColumns args) {
    const int64_t row = blockIdx.x * static_cast<int64_t>(blockDim.x / kWarp) + threadIdx.x / kWarp;
    const int64_t product = args.first_product + blockIdx.y;
    const int lane = threadIdx.x & 31;
    if (row >= args.m.n_out) return;
    const int64_t slot = find_slot(args.m, product);
    const int64_t n_in = args.m.n_in;
    constexpr int kStep = 16 / sizeof(T);
    float sums[kColumns] = {};
    if (slot >= 0) {
        const T* w = reinterpret_cast<const T*>(args.m.data + slot * args.m.stride) + row * n_in;
        const float* x = args.x + product / args.x_divisor * args.x_stride;
        int64_t done = 0;
        if (n_in % kStep == 0) {
#pragma unroll 4
            for (int64_t k = lane * kStep; k < n_in; k += kWarp * kStep) {
                const int4 raw = __ldcs(reinterpret_cast<const int4*>(w + k));
                T values[kStep];
                memcpy(values, &raw, sizeof(raw));
                for (int c = 0; c < kColumns; ++c)
                    for (int j = 0; j < kStep; ++j)
                        if (c < args.n_columns)
                            sums[c] = __fmaf_rn(to_float(values[j]), x[c * args.x_column_stride + k + j], sums[c]);
            }
            done = n_in;
        }
        for (int64_t k = done + lane; k < n_in; k += kWarp)
            for (int c = 0; c < kColumns; ++c)
                if (c < args.n_columns) sums[c] = __fmaf_rn(to_float(w[k]), x[c * args.x_column_stride + k], sums[c]);
    }
    for (int c = 0; c < kColumns; ++c) {
        const float sum = warp_sum(sums[c]);
        if (lane != 0 || c >= args.n_columns) continue;
        const float bias = args.m.bias && slot >= 0 ? args.m.bias[slot * args.m.bias_stride + row] : 0.0f;
        args.y[product * args.y_stride + c * args.y_column_stride + row] = args.m.bias ? sum + bias : sum;
    }
}

/// Warps of a block: many where there are enough of them for every multiprocessor, for they share activations.
unsigned warps_per_block(int64_t n_warps, int n_sm) {
    unsigned n = 16;
    while (n > 1 && n_warps / n < 2 * n_sm) n /= 2;
    return n;
}

/// A grid of units, one warp each, for every product.
template <class Kernel>
void start(Kernel kernel, int64_t n_units, const FewColumns& args, const Launch& launch) {
    const unsigned n_warps = warps_per_block(n_units * args.n_products, launch.n_sm);
    const dim3 grid(static_cast<unsigned>(ceil_div(n_units, n_warps)), static_cast<unsigned>(args.n_products));
    kernel<<<grid, n_warps * kWarp, 0, launch.stream>>>(args);
}

template <class Tile, int kColumns>
void start_integers(const FewColumns& args, const Launch& launch) {
    constexpr int64_t kEnoughWarps = 16;  // a multiprocessor, so that they hide each other's latencies
    const int64_t n_tiles = ceil_div(args.m.n_out, kRows);
    if (n_tiles * args.n_products >= kEnoughWarps * launch.n_sm)
        start(integer_kernel<Tile, kColumns>, n_tiles, args, launch);
    else
        start(split_integer_kernel<Tile, kColumns>, 4 * n_tiles, args, launch);
}

template <int kColumns>
void launch_columns(const FewColumns& args, const Launch& launch) {
    switch (args.m.dtype) {
        case DType::F32:
            return start(plain_kernel<float, kColumns>, args.m.n_out, args, launch);
        case DType::F16:
            return start(plain_kernel<__half, kColumns>, args.m.n_out, args, launch);
        case DType::BF16:
            return start(plain_kernel<__nv_bfloat16, kColumns>, args.m.n_out, args, launch);
        case DType::Q8_0:
            return start_integers<TileQ8_0, kColumns>(args, launch);
        case DType::Q4_0:
            return start_integers<TileQ4_0, kColumns>(args, launch);
        case DType::Q4_1:
            return start_integers<TileQ4_1, kColumns>(args, launch);
        case DType::Q4_K:
            return start_integers<TileQ4_K, kColumns>(args, launch);
        case DType::Q6_K:
            return start_integers<TileQ6_K, kColumns>(args, launch);
        case DType::MXFP4:
            return start_integers<TileMXFP4, kColumns>(args, launch);
        case DType::MXFP8:
            return start(mxfp8_kernel<kColumns>, ceil_div(args.m.n_out, kRows), args, launch);
        default:
            return;  // supports() lets nothing else through
    }
}

}  // namespace

void multiply_few(const FewColumns& all, const Launch& launch) {
    constexpr int64_t kMostProducts = 32768;  // a grid's second dimension ends at 65535
    if (all.n_columns == 0) return;
    for (int64_t first = 0; first < all.n_products; first += kMostProducts) {
        FewColumns args = all;
        args.first_product = first;
        args.n_products = std::min(kMostProducts, all.n_products - first);
        if (args.n_columns == 1)
            launch_columns<1>(args, launch);
        else if (args.n_columns == 2)
            launch_columns<2>(args, launch);
        else if (args.n_columns <= 4)
            launch_columns<4>(args, launch);
        else
            launch_columns<8>(args, launch);
    }
}

}  // namespace ggmlx::cuda
