// Products of many columns of integer types on the int8 tensor cores, in the order of reference.h.
//
// A weight tile (16 rows x 32 k) is one A operand of mma.m16n8k32, whose exact integer sums are then scaled and added
// by ordinary fused multiply-adds: one K block after the other within a partial sum, partial sums one after the other
// (0, 4, 2, 6, 1, 5, 3, 7), so that only one of them and the sums of pairs are live. The scaling bounds it: an mma of
// 4096 multiply-adds brings 128 results, each of which costs three float operations.

#include "ggmlx/backend/cuda/kernels/products.cuh"

namespace ggmlx::cuda {
namespace {

constexpr int kRows = 16, kWarpsPerBlock = 4;

/// Added to integer sums by the tensor core, so that the bits of the result are a float: 1.5 · 2^23 + i.
constexpr int kMagicBits = 0x4b400000;
constexpr float kMagic = 12582912.0f;

__device__ inline void mma_k32(int (&c)[4], const int (&a)[4], int2 b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}
__device__ inline void mma_k16(int (&c)[4], int a0, int a1, int b) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a0), "r"(a1), "r"(b));
}

/// The results a lane holds of one group of 8 columns: rows r and r + 8 of columns 2j and 2j + 1.
struct Sums {
    float v[4];
};

/// One K block of one group of columns.
template <class Tile>
__device__ inline void add_products(Sums& sums, const int (&a)[4], int2 b, const RowScale (&w)[2],
                                    const ActivationMeta (&x)[2]) {
    if constexpr (Tile::kType == DType::Q6_K) {
        int low[4] = {}, high[4] = {};
        mma_k16(low, a[0], a[1], b.x);
        mma_k16(high, a[2], a[3], b.y);
        for (int i = 0; i < 4; ++i) sums.v[i] = add_block<Tile>(sums.v[i], low[i], high[i], w[i >> 1], x[i & 1]);
    } else {
        int c[4] = {kMagicBits, kMagicBits, kMagicBits, kMagicBits};
        mma_k32(c, a, b);
        for (int i = 0; i < 4; ++i) {
            const ActivationMeta& column = x[i & 1];
            if constexpr (Tile::kType == DType::Q4_0) c[i] -= 8 * (column.low + column.high);
            const float integer = __int_as_float(c[i]) - kMagic;
            sums.v[i] = __fmaf_rn(integer, w[i >> 1].scale * column.scale, sums.v[i]);
            if constexpr (Tile::kType == DType::Q4_1 || Tile::kType == DType::Q4_K)
                sums.v[i] = __fmaf_rn(-static_cast<float>(column.low + column.high), w[i >> 1].minimum * column.scale,
                                      sums.v[i]);
        }
    }
}

template <int kGroups>
struct Accumulators {
    Sums group[kGroups] = {};

    __device__ void add(const Accumulators& other) {
        for (int n = 0; n < kGroups; ++n)
            for (int i = 0; i < 4; ++i) group[n].v[i] += other.group[n].v[i];
    }
};

template <class Tile, int kGroups>
class ColumnTile {
  public:
    __device__ ColumnTile(const Tile* tiles, const Activations& a, int64_t first_group, int n_groups)
        : tiles_(tiles), a_(a), first_group_(first_group), n_groups_(n_groups) {}

    /// All eight partial sums, reduced pairwise.
    __device__ void run(Accumulators<kGroups>& total) const {
        half_of_partials(0, total);
        Accumulators<kGroups> odd;
        half_of_partials(1, odd);
        total.add(odd);
    }

  private:
    const Tile* tiles_;
    const Activations& a_;
    int64_t first_group_;
    int n_groups_;

    /// ((p) + (p + 4)) + ((p + 2) + (p + 6))
    __device__ void half_of_partials(int p, Accumulators<kGroups>& sums) const {
        pair_of_partials(p, sums);
        Accumulators<kGroups> second;
        pair_of_partials(p + 2, second);
        sums.add(second);
    }
    __device__ void pair_of_partials(int p, Accumulators<kGroups>& sums) const {
        partial(p, sums);
        Accumulators<kGroups> second;
        partial(p + 4, second);
        sums.add(second);
    }
    __device__ void partial(int p, Accumulators<kGroups>& sums) const {
        constexpr int kSub = kSubBlocks<Tile>;
        const int lane = threadIdx.x & 31, r = lane >> 2, j = lane & 3;
        for (int64_t b = p; b < a_.n_blocks; b += 8) {
            const Tile& tile = tiles_[b / kSub];
            const int sub = kSub > 1 ? p : 0;
            const WordPair upper = read_words(tile, sub, j, r), lower = read_words(tile, sub, j, r + 8);
            const int a[4] = {upper.low, lower.low, upper.high, lower.high};
            const RowScale scales[2] = {read_scale(tile, sub, r), read_scale(tile, sub, r + 8)};
#pragma unroll
            for (int n = 0; n < kGroups; ++n) {
                if (n >= n_groups_) break;
                const int64_t index = a_.block_index(first_group_ + n, b) * kGroupWidth;
                const int2 words = *reinterpret_cast<const int2*>(a_.q + index * 32 + lane * 8);
                ActivationMeta meta[2];
                const int4 raw = *reinterpret_cast<const int4*>(a_.meta + index + 2 * j);
                memcpy(meta, &raw, sizeof(raw));
                add_products<Tile>(sums.group[n], a, words, scales, meta);
            }
        }
    }
};

template <class Tile, int kGroups>
__global__ void __launch_bounds__(kWarpsPerBlock* kWarp) many_kernel(ManyColumns args) {
    const int64_t row_tile = blockIdx.x * static_cast<int64_t>(kWarpsPerBlock) + threadIdx.x / kWarp;
    const int64_t chunk_index = blockIdx.y;
    Chunk chunk{
        0, static_cast<int32_t>(chunk_index * kChunkGroups),
        static_cast<int32_t>(min(static_cast<int64_t>(kChunkGroups), args.n_groups - chunk_index * kChunkGroups))};
    if (args.chunks) {
        if (chunk_index >= *args.n_chunks) return;
        chunk = args.chunks[chunk_index];
    }
    if (row_tile * kRows >= args.m.n_out) return;
    const Tile* tiles = reinterpret_cast<const Tile*>(args.m.data + chunk.slot * args.m.stride) +
                        row_tile * (args.a.n_blocks / kSubBlocks<Tile>);
    Accumulators<kGroups> total;
    ColumnTile<Tile, kGroups>(tiles, args.a, chunk.first_group, chunk.n_groups).run(total);

    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int n = 0; n < kGroups; ++n) {
        if (n >= chunk.n_groups) break;
        for (int i = 0; i < 4; ++i) {
            const int64_t row = row_tile * kRows + (lane >> 2) + 8 * (i >> 1);
            const int64_t column =
                (chunk.first_group + n) * static_cast<int64_t>(kGroupWidth) + 2 * (lane & 3) + (i & 1);
            const int64_t to = args.column_row ? args.column_row[column] : column < args.n_columns ? column : -1;
            if (to < 0 || row >= args.m.n_out) continue;
            float v = total.group[n].v[i];
            if (args.m.bias) v = v + args.m.bias[chunk.slot * args.m.bias_stride + row];
            args.y[to * args.y_stride + row] = v;
        }
    }
}

template <class Tile>
void launch_tile(const ManyColumns& args, const Launch& launch) {
    const int64_t n_chunks = args.chunks ? args.max_chunks : ceil_div(args.n_groups, kChunkGroups);
    const dim3 grid(static_cast<unsigned>(ceil_div(ceil_div(args.m.n_out, kRows), kWarpsPerBlock)),
                    static_cast<unsigned>(n_chunks));
    many_kernel<Tile, kChunkGroups><<<grid, kWarpsPerBlock * kWarp, 0, launch.stream>>>(args);
}

}  // namespace

void multiply_many(const ManyColumns& args, const Launch& launch) {
    switch (args.m.dtype) {
        case DType::Q8_0:
            return launch_tile<TileQ8_0>(args, launch);
        case DType::Q4_0:
            return launch_tile<TileQ4_0>(args, launch);
        case DType::Q4_1:
            return launch_tile<TileQ4_1>(args, launch);
        case DType::Q4_K:
            return launch_tile<TileQ4_K>(args, launch);
        case DType::Q6_K:
            return launch_tile<TileQ6_K>(args, launch);
        case DType::MXFP4:
            return launch_tile<TileMXFP4>(args, launch);
        default:
            return;  // has_integer_products() decides who comes here
    }
}

}  // namespace ggmlx::cuda
