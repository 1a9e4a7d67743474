// Products of many columns of integer types on the int8 tensor cores, in the order of reference.h.
//
// A weight tile (16 rows x 32 k) is one A operand of mma.m16n8k32, whose exact integer sums are then scaled and added
// by ordinary fused multiply-adds: one K block after the other within a partial sum, partial sums one after the other
// (0, 4, 2, 6, 1, 5, 3, 7), so that only one of them and the sums of pairs are live. The scaling bounds it: an mma of
// 4096 multiply-adds brings 128 results, each of which costs three float operations. Four warps, each with a tile of
// rows, share the activations of a chunk of columns, which come through a ring in shared memory.

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
            sums.v[i] = add_scaled<Tile>(sums.v[i], __int_as_float(c[i]) - kMagic, w[i >> 1], column);
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

/// The K blocks of a product in the order of reference.h: partial sums 0, 4, 2, 6, 1, 5, 3, 7, within one of them its
/// blocks. `turn` counts partial sums.
struct BlockWalk {
    int64_t n_blocks;
    int turn = 0;
    int64_t block = 0;

    __device__ explicit BlockWalk(int64_t n) : n_blocks(n) {}
    __device__ bool is_done() const { return turn == 8; }
    __device__ int partial() const { return ((turn & 1) << 2) | (turn & 2) | (turn >> 2); }
    /// Passes over partial sums without a block (a short K).
    __device__ void advance() {
        block += 8;
        while (turn < 8 && block >= n_blocks) {
            ++turn;
            block = partial();
        }
    }
};

/// Activations of a chunk, some K blocks ahead, in shared memory: brought by asynchronous copies of 16 bytes.
template <int kGroups>
class ActivationRing {
  public:
    static constexpr int kStages = 4;
    static constexpr int kBlockBytes = kGroupWidth * 32;
    static constexpr int kMetaBytes = kGroupWidth * static_cast<int>(sizeof(ActivationMeta));
    struct alignas(16) Stage {
        int8_t q[kGroups][kBlockBytes];
        std::byte meta[kGroups][kMetaBytes];
    };

    __device__ ActivationRing(Stage* stages, const Activations& a, const Chunk& chunk)
        : stages_(stages), a_(a), chunk_(chunk), ahead_(a.n_blocks) {
        for (int i = 0; i < kStages - 1; ++i) bring(i);
    }
    /// The stage of the next block of the walk; all threads of the block call it.
    __device__ const Stage& next() {
        asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2));
        __syncthreads();
        const Stage& stage = stages_[at_ % kStages];
        bring((at_ + kStages - 1) % kStages);
        ++at_;
        return stage;
    }

  private:
    Stage* stages_;
    const Activations& a_;
    const Chunk& chunk_;
    BlockWalk ahead_;
    int at_ = 0;

    __device__ static void copy16(void* to, const void* from) {
        const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from));
    }
    __device__ void bring(int stage) {
        if (!ahead_.is_done()) {
            constexpr int kPieces = (kBlockBytes + kMetaBytes) / 16, kOfBlock = kBlockBytes / 16;
            for (int i = threadIdx.x; i < chunk_.n_groups * kPieces; i += kWarpsPerBlock * kWarp) {
                const int group = i / kPieces, piece = i % kPieces;
                const int64_t index = a_.block_index(chunk_.first_group + group, ahead_.block) * kGroupWidth;
                if (piece < kOfBlock)
                    copy16(stages_[stage].q[group] + piece * 16, a_.q + index * 32 + piece * 16);
                else
                    copy16(stages_[stage].meta[group] + (piece - kOfBlock) * 16,
                           reinterpret_cast<const std::byte*>(a_.meta + index) + (piece - kOfBlock) * 16);
            }
            ahead_.advance();
        }
        asm volatile("cp.async.commit_group;");
    }
};

/// What a lane reads of one weight tile: words of rows r and r + 8, and their scales.
template <class Tile>
struct WeightBlock {
    int a[4];
    RowScale scales[2];

    __device__ void load(const Tile* tiles, const BlockWalk& walk) {
        if (walk.is_done()) return;
        constexpr int kSub = kSubBlocks<Tile>;
        const int r = (threadIdx.x & 31) >> 2, j = threadIdx.x & 3;
        const Tile& tile = tiles[walk.block / kSub];
        const int sub = kSub > 1 ? walk.partial() : 0;
        const WordPair upper = read_words(tile, sub, j, r), lower = read_words(tile, sub, j, r + 8);
        a[0] = upper.low, a[1] = lower.low, a[2] = upper.high, a[3] = lower.high;
        scales[0] = read_scale(tile, sub, r);
        scales[1] = read_scale(tile, sub, r + 8);
    }
};

/// Joins finished partial sums turn by turn: ((0+4) + (2+6)) + ((1+5) + (3+7)).
template <int kGroups>
class PairwiseSum {
  public:
    /// Takes the partial sum of a turn and clears it.
    __device__ void take(int turn, Accumulators<kGroups>& partial) {
        if (turn & 1) {
            pair_.add(partial);
            if (turn & 2) {
                half_.add(pair_);
                if (turn == 3) first_ = half_;
            } else {
                half_ = pair_;
            }
        } else {
            pair_ = partial;
        }
        partial = {};
    }
    __device__ const Accumulators<kGroups>& total() {
        first_.add(half_);
        return first_;
    }

  private:
    Accumulators<kGroups> pair_, half_, first_;
};

template <class Tile, int kGroups>
__device__ void multiply_chunk(const Tile* tiles, const Activations& a, const Chunk& chunk,
                               typename ActivationRing<kGroups>::Stage* stages, PairwiseSum<kGroups>& sums) {
    ActivationRing<kGroups> ring(stages, a, chunk);
    const int lane = threadIdx.x & 31;
    BlockWalk walk(a.n_blocks), weights_ahead(a.n_blocks);
    WeightBlock<Tile> current{}, following{};
    following.load(tiles, weights_ahead);
    Accumulators<kGroups> partial;
    int turn = 0;
    for (; !walk.is_done(); walk.advance()) {
        for (; turn < walk.turn; ++turn) sums.take(turn, partial);
        current = following;
        weights_ahead.advance();
        following.load(tiles, weights_ahead);
        const auto& stage = ring.next();
#pragma unroll
        for (int n = 0; n < kGroups; ++n) {
            if (n >= chunk.n_groups) break;
            const int2 words = *reinterpret_cast<const int2*>(stage.q[n] + lane * 8);
            ActivationMeta meta[2];
            const int4 raw = *reinterpret_cast<const int4*>(stage.meta[n] + (lane & 3) * 16);
            memcpy(meta, &raw, sizeof(raw));
            add_products<Tile>(partial.group[n], current.a, words, current.scales, meta);
        }
    }
    for (; turn < 8; ++turn) sums.take(turn, partial);
    asm volatile("cp.async.wait_all;");
}

template <class Tile, int kGroups>
__global__ void __launch_bounds__(kWarpsPerBlock* kWarp) many_kernel(ManyColumns args) {
    __shared__ typename ActivationRing<kGroups>::Stage stages[ActivationRing<kGroups>::kStages];
    const int64_t chunk_index = blockIdx.y, n_row_tiles = (args.m.n_out + kRows - 1) / kRows;
    Chunk chunk{0, static_cast<int32_t>(chunk_index * kGroups),
                static_cast<int32_t>(min(static_cast<int64_t>(kGroups), args.n_groups - chunk_index * kGroups))};
    if (args.chunks) {
        if (chunk_index >= *args.n_chunks) return;
        chunk = args.chunks[chunk_index];
    }
    // A warp behind the last tile helps to bring activations and computes what nobody stores.
    const int64_t wanted = blockIdx.x * static_cast<int64_t>(kWarpsPerBlock) + threadIdx.x / kWarp;
    const Tile* tiles = reinterpret_cast<const Tile*>(args.m.data + chunk.slot * args.m.stride) +
                        min(wanted, n_row_tiles - 1) * (args.a.n_blocks / kSubBlocks<Tile>);
    PairwiseSum<kGroups> sums;
    multiply_chunk<Tile, kGroups>(tiles, args.a, chunk, stages, sums);
    const Accumulators<kGroups>& total = sums.total();

    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int n = 0; n < kGroups; ++n) {
        if (n >= chunk.n_groups) break;
        for (int i = 0; i < 4; ++i) {
            const int64_t row = wanted * kRows + (lane >> 2) + 8 * (i >> 1);
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

template <class Tile, int kGroups>
void launch_groups(const ManyColumns& args, const Launch& launch) {
    const int64_t n_chunks = args.chunks ? args.max_chunks : ceil_div(args.n_groups, kGroups);
    const dim3 grid(static_cast<unsigned>(ceil_div(ceil_div(args.m.n_out, kRows), kWarpsPerBlock)),
                    static_cast<unsigned>(n_chunks));
    many_kernel<Tile, kGroups><<<grid, kWarpsPerBlock * kWarp, 0, launch.stream>>>(args);
}

template <class Tile>
void launch_tile(const ManyColumns& args, const Launch& launch) {
    if (args.chunk_groups < kChunkGroups)
        launch_groups<Tile, kSmallChunkGroups>(args, launch);
    else
        launch_groups<Tile, kChunkGroups>(args, launch);
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
