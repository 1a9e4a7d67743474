#pragma once
// The boundary between code compiled once and code compiled per instruction set: the arguments kernels take and the
// table of kernels an ISA fills. Plain data only; an inline function here could be kept by the linker in a copy that
// needs a newer processor than the one it runs on.

#include <cstdint>

#include "ggmlx/core/dtype_id.h"

namespace ggmlx {

/// 32 activations as int8 with what the dot products need beside them; one cache line.
struct alignas(64) ActivationBlock {
    int8_t q[32];
    float scale;
    float sum;  ///< of q
    /// What unsigned weights w + offset add too much: -offset · Σ q for the offsets 8, 12 and 128.
    int32_t minus_offset[3];
    /// Sums of [0] the first half, [1] the second, [2] both; each cut by k mod 4: {0 and 1, 2 and 3}.
    int16_t pair[3][2];
};
static_assert(sizeof(ActivationBlock) == 64);
/// Where ActivationBlock::minus_offset has the offsets 8, 12 and 128.
template <int offset>
inline constexpr int kOffsetPlace = offset == 8    ? 0
                                    : offset == 12 ? 1
                                                   : 2;

/// Output columns that a matmul kernel takes at once; decoded weights are reused over them.
inline constexpr int kMaxColumns = 4;

/// One row of x and where its products go. x is ActivationBlock[ceil(n_in / 32)] for types with an integer dot product,
/// else float[n_in], which for MXFP8 is followed by zeros up to a multiple of 32.
struct Column {
    const void* x;
    float* y;  ///< [n_out]
};

/// y = W x (+ bias) for one weight matrix [n_out, n_in] in its stored form.
///
/// Block b of a row adds to partial sum b mod 8. A matrix may also be what is left of a wider one when only every n-th
/// block is kept (n = 2, 4, 8; expert_shards.h): then it has 8 / n partial sums, block b adds to sum b mod (8 / n), and
/// y has the bits that the same partial sums of the wider matrix add up to.
struct MatmulArgs {
    const void* weight;
    int64_t n_out;
    int64_t n_in;
    const float* bias;   ///< [n_out] or null; added after the sum
    int n_partials = 8;  ///< 8, or 4, 2 or 1 for types stored in tiles of 32 values
};

/// Many columns, in groups of 16. A group's blocks lie as partial sums read them, so that they are one stream: first
/// blocks 0, 8, 16 … of all 16 columns, then 1, 9, 17 …; each of the eight parts has room for ceil(n_blocks / 8). With
/// fewer partial sums (MatmulArgs) there are as many parts as sums.
inline constexpr int kGroupColumns = 16;
struct ColumnGroups {
    const ActivationBlock*
        x;  ///< [ceil(n / 16)][n_partials][ceil(n_blocks / n_partials)][16]; columns beyond n are blocks like any other
    int64_t n;
    float* y;
    int64_t y_stride;      ///< floats from one row of y to the next
    const int32_t* y_row;  ///< [n] the row of y that a column fills; null: its own number
};

/// 32 weights of a tile's 16 rows, decoded once for many columns.
struct alignas(64) PanelBlock {
    uint8_t w[8][16][4];  ///< as an ISA's dot products read them
    float scale[16];
    float addend[16];  ///< types with a minimum: what is added per unit of activation
};

/// 32 activations as bf16. In a group of columns it takes the place of an ActivationBlock.
struct alignas(64) Bf16Block {
    uint16_t x[32];
};
static_assert(sizeof(Bf16Block) == sizeof(ActivationBlock));

/// 32 weights of a tile's 16 rows as bf16: pairs of consecutive values, those of the 16 rows side by side.
struct alignas(64) Bf16Panel {
    uint16_t w[16][16][2];
};

/// Scratch of a kernel of groups for one row tile: its panel, and partial sums of a group.
struct PanelSums {
    float at[8][kGroupColumns][16];
};

/// SwiGLUParams of graph/op.h.
struct SwiGLUArgs {
    float alpha;
    float clamp;
    float up_offset;
};

/// Consecutive rows of one cache block and head, of the cache's type, of which dims [dim_begin, dim_end) are wanted as
/// float32. dim_begin is a multiple of 32.
struct UnpackArgs {
    const void* rows;
    int64_t row_bytes;
    int64_t n_rows;
    int64_t dim_begin, dim_end;
    float* out;  ///< 64-byte aligned, see CpuKernels
};

/// A query head of a token, as seen by the kernels that work on a piece of consecutive cache rows. The token sees rows
/// [begin, end) of the piece, perhaps none.
struct AttentionQuery {
    const float* q;  ///< [head_dim]
    float* y;        ///< sums of the dims that are worked on
    float* scores;   ///< scores, later weights, of rows begin, begin + 1, … of the piece
    int64_t begin, end;
};

/// Rows of the cache that will be wanted next: asked for while the present ones are worked on, so that reading and
/// computing overlap.
struct RowsAhead {
    const char* first;
    int64_t row_bytes;  ///< from one to the next
    int64_t n_bytes;    ///< wanted of each
    int64_t n_rows;
};

/// Scores of queries against the keys of a piece.
struct ScoreArgs {
    const AttentionQuery* queries;
    int n_queries;
    const float* keys;  ///< as unpack_keys leaves them
    int64_t n_rows;
    int64_t head_dim;
    float scale;
    RowsAhead ahead;
};

/// The weighted sums of the value rows of a piece, added to the queries' y.
struct ValueArgs {
    const AttentionQuery* queries;
    int n_queries;
    const float* values;  ///< as unpack_values leaves them
    int64_t n_dims;
    RowsAhead ahead;
};

/// Products with weights, by weight dtype. A null entry: no such type for this work.
struct MatmulKernels {
    /// Rows [16 · tile_begin, 16 · tile_end) of y for n_columns <= kMaxColumns columns.
    void (*matmul[kDTypeCount])(const MatmulArgs& args, const Column* columns, int n_columns, int64_t tile_begin,
                                int64_t tile_end) noexcept;

    /// The same for groups of columns. panels: [tile_end - tile_begin][n_partials][ceil(n_blocks / n_partials)]; sums:
    /// [tile_end - tile_begin]. For types with an integer dot product.
    void (*matmul_groups[kDTypeCount])(const MatmulArgs& args, const ColumnGroups& columns, int64_t tile_begin,
                                       int64_t tile_end, PanelBlock* panels, PanelSums* sums) noexcept;
    /// Multiplies int8 values in registers, n_rounds times a few; returns the number of multiply-adds.
    int64_t (*int8_peak)(int64_t n_rounds) noexcept;
};

/// Products in bf16, which are asked for (`--fast-bf16`): weights and activations are rounded to bf16, sums are float32
/// in an order of their own. By weight dtype; a null entry: the exact products are as fast, or there are none in bf16.
struct Bf16Kernels {
    const char* name;  ///< "amx_bf16"; null: no such products
    /// As MatmulKernels::matmul_groups, but columns.x are Bf16Blocks. panels: [tile_end -
    /// tile_begin][n_partials][ceil(n_blocks / n_partials)].
    void (*matmul[kDTypeCount])(const MatmulArgs& args, const ColumnGroups& columns, int64_t tile_begin,
                                int64_t tile_end, Bf16Panel* panels) noexcept;
    /// Rounds blocks [begin, end) of a row of n values to their places in a column of a group for so many partial sums,
    /// which begins at out; false if a value is not finite.
    bool (*round_row)(const float* x, int64_t n, int64_t begin, int64_t end, Bf16Block* out,
                      int group_partials) noexcept;
};

/// One instruction set's kernels.
struct CpuKernels : MatmulKernels {
    const char* name;
    const char* float_name;  ///< of the instruction set whose products of floats these are

    /// Reads an even number of lines of 64 bytes; the result depends on all, so that no reading can be left out.
    uint64_t (*read_lines)(const void* lines, int64_t n_lines) noexcept;
    /// Quantizes blocks [begin, end) of a row of n values; false if a value is not finite. Block b goes to out[b], or,
    /// if group_partials > 0, to its place in a column of a group for so many partial sums; the column begins at out.
    bool (*quantize_row)(const float* x, int64_t n, int64_t begin, int64_t end, ActivationBlock* out,
                         int group_partials) noexcept;
    void (*add)(const float* a, const float* b, float* y, int64_t n) noexcept;
    void (*mul)(const float* a, const float* b, float* y, int64_t n) noexcept;
    void (*scale)(float factor, const float* x, float* y, int64_t n) noexcept;
    void (*add_scaled)(float factor, const float* x, float* y, int64_t n) noexcept;  ///< y += factor · x
    void (*divide)(float divisor, const float* x, float* y, int64_t n) noexcept;
    void (*swiglu)(const float* gate, const float* up, float* y, int64_t n, const SwiGLUArgs& args) noexcept;
    void (*rms_norm)(const float* x, const float* weight, float* y, int64_t n, float eps) noexcept;
    void (*softmax)(const float* x, float* y, int64_t n) noexcept;
    void (*sigmoid)(const float* x, float* y, int64_t n) noexcept;
    float (*largest)(const float* x, int64_t n) noexcept;  ///< NaNs left out; -inf if nothing is left
    /// y = exp(x - m); returns the sum.
    float (*exp_sum)(const float* x, float m, float* y, int64_t n) noexcept;

    /// By cache dtype: writes one row of n values; reads rows as keys and as values. A row's dims are cut into chunks
    /// of eight, the last one filled up. Values: chunk after chunk, row after row. Keys: the same chunk of the rows
    /// that fit one vector side by side, then the next chunk; then the next rows, with rows of zeros up to a multiple
    /// of eight.
    void (*store_row[kDTypeCount])(const float* x, int64_t n, void* row) noexcept;
    void (*unpack_keys[kDTypeCount])(const UnpackArgs& args) noexcept;
    void (*unpack_values[kDTypeCount])(const UnpackArgs& args) noexcept;
    void (*attention_scores)(const ScoreArgs& args) noexcept;
    void (*attention_values)(const ValueArgs& args) noexcept;

    Bf16Kernels bf16;  ///< nothing, unless asked for
};

extern const CpuKernels scalar_kernels;
#if defined(__x86_64__)
extern const CpuKernels avx2_kernels;
extern const CpuKernels avx512_kernels;
// Newer instruction sets that replace products alone; null entries stay those of avx2 and avx512.
extern const MatmulKernels avx_vnni_matmul;    ///< over avx2
extern const MatmulKernels amx_matmul;         ///< over avx512
extern const Bf16Kernels avx512_bf16_kernels;  ///< beside avx512
extern const Bf16Kernels amx_bf16_kernels;     ///< beside amx
#endif

}  // namespace ggmlx
