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

/// MXFP8: the same walk over floats, k increasing within a block.
template <int kColumns>
__global__ void mxfp8_kernel(FewColumns args) {
    const int64_t row_tile = blockIdx.x * static_cast<int64_t>(blockDim.x / kWarp) + threadIdx.x / kWarp;
    const int64_t product = args.first_product + blockIdx.y;
    if (row_tile * kRows >= args.m.n_out) return;
    const int64_t slot = find_slot(args.m, product);
    if (slot < 0) return store_zeros<kColumns>(args, product, row_tile * kRows);
    const int p = (threadIdx.x & 31) >> 2, q = threadIdx.x & 3;
    const int64_t n_in = args.m.n_in, n_blocks = ceil_div(n_in, 32);
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

template <int kColumns>
void launch_columns(const FewColumns& args, const Launch& launch) {
    const DType dtype = args.m.dtype;
    const int64_t n_units = is_block(dtype) ? ceil_div(args.m.n_out, kRows) : args.m.n_out;
    const unsigned n_warps = warps_per_block(n_units * args.n_products, launch.n_sm);
    const dim3 grid(static_cast<unsigned>(ceil_div(n_units, n_warps)), static_cast<unsigned>(args.n_products));
    const auto start = [&](auto kernel) { kernel<<<grid, n_warps * kWarp, 0, launch.stream>>>(args); };
    switch (dtype) {
        case DType::F32:
            return start(plain_kernel<float, kColumns>);
        case DType::F16:
            return start(plain_kernel<__half, kColumns>);
        case DType::BF16:
            return start(plain_kernel<__nv_bfloat16, kColumns>);
        case DType::Q8_0:
            return start(integer_kernel<TileQ8_0, kColumns>);
        case DType::Q4_0:
            return start(integer_kernel<TileQ4_0, kColumns>);
        case DType::Q4_1:
            return start(integer_kernel<TileQ4_1, kColumns>);
        case DType::Q4_K:
            return start(integer_kernel<TileQ4_K, kColumns>);
        case DType::Q6_K:
            return start(integer_kernel<TileQ6_K, kColumns>);
        case DType::MXFP4:
            return start(integer_kernel<TileMXFP4, kColumns>);
        case DType::MXFP8:
            return start(mxfp8_kernel<kColumns>);
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
