// Attention over cached keys and values, in one pass with a running maximum.
//
// A block serves kQueries queries (token, head) of one KV head and one stretch of positions, kTile positions at a time
// in shared memory as float32: a warp has kQueries / 8 of the queries; for scores its lanes are positions, for the sums
// of values they are dims. With few tokens positions are cut into stretches of kStretch, so that one long sequence
// fills the device; a second kernel joins the stretches. Where they are cut depends on positions alone, so a token's
// result does not depend on its batch.

#include <algorithm>

#include "ggmlx/backend/cuda/kernels/convert.cuh"
#include "ggmlx/backend/cuda/ops.h"

namespace ggmlx::cuda {
namespace {

constexpr int kTile = 32, kWarps = 8, kThreads = kWarps * kWarp;
constexpr int kStretch = 256;        // positions of a stretch
constexpr int64_t kFewTokens = 8;    // up to here positions are cut into stretches
constexpr int kMaxDimsPerLane = 16;  // head_dim_v up to 512

struct Args {
    const float* q;
    const std::byte *k_cache, *v_cache;
    int64_t k_row_bytes, v_row_bytes;
    const int32_t *block_table, *sequence, *positions;
    const float* sinks;
    float* y;
    float*
        partial;  ///< [n_queries][n_stretches][head_dim_v + 2]: sums, then maximum and denominator; null: one stretch
    StatusWord* status;
    float scale;
    int window;
    int n_tokens, n_head, n_head_kv, head_dim, head_dim_v;
    int n_blocks, block_len, n_sequences, max_blocks, n_stretches;

    __host__ __device__ int group() const { return n_head / n_head_kv; }
};

/// What one token sees; last < 0: nothing.
struct Visible {
    int sequence = -1, first = 0, last = -1;
};

/// As find_visible of the reference, without the blocks. A token that is wrong, not padded, is reported.
__device__ Visible find_visible(const Args& a, int t) {
    Visible v;
    const int sequence = a.sequence[t], position = a.positions[t];
    if (sequence >= 0 && sequence < a.n_sequences && position >= 0 && position < a.max_blocks * a.block_len)
        v = {sequence, a.window > 0 ? max(0, position - a.window + 1) : 0, position};
    else if (sequence != -1)
        report(a.status, Fault::BadIndex, t);
    return v;
}

/// Whether a block the token reads lies outside the cache; a whole warp asks.
__device__ bool has_bad_block(const Args& a, const Visible& v) {
    bool bad = false;
    const int32_t* table = a.block_table + v.sequence * a.max_blocks;
    for (int b = v.first / a.block_len + threadIdx.x % kWarp; b <= v.last / a.block_len; b += kWarp)
        bad |= table[b] < 0 || table[b] >= a.n_blocks;
    return __any_sync(kAllLanes, bad);
}

/// One query as its warp keeps it: the running maximum, each lane's share of the denominator, sums of values.
struct Query {
    float largest = -INFINITY;
    float denominator = 0.0f;
    float sums[kMaxDimsPerLane] = {};
};

/// Rows of positions first … first + kTile - 1 (within [begin, end]) of a cache into shared memory, zeros up to
/// n_padded values, `stride` floats apart.
template <DType kType>
__device__ void load_tile(const Args& a, const std::byte* cache, int64_t row_bytes, int n_dims, int n_padded,
                          int head_kv, const int32_t* table, int first, int begin, int end, float* to, int stride) {
    for (int i = threadIdx.x; i < kTile * n_padded; i += kThreads) {
        const int j = i / n_padded, d = i % n_padded, position = first + j;
        float v = 0.0f;
        if (d < n_dims && position >= begin && position <= end) {
            const int block = table[position / a.block_len];
            if (block >= 0 && block < a.n_blocks) {
                const int64_t row =
                    (static_cast<int64_t>(block) * a.n_head_kv + head_kv) * a.block_len + position % a.block_len;
                v = load_cache_value<kType>(cache + row * row_bytes, d);
            }
        }
        to[j * stride + d] = v;
    }
}

template <DType kK, DType kV, int kPerWarp>
__global__ void __launch_bounds__(kThreads) attention_kernel(Args a) {
    constexpr int kQueries = kPerWarp * kWarps;
    extern __shared__ float shared[];
    const int group = a.group(), head_kv = blockIdx.y, stretch = blockIdx.z;
    const int n_queries = a.n_tokens * group;  // of one KV head
    const int k_stride = (a.head_dim + 3) / 4 * 4 + 4, n_rows_dims = max(k_stride, a.head_dim_v);
    float *tile = shared, *q_rows = shared + kTile * n_rows_dims;
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const int first_query = blockIdx.x * kQueries;
    const bool shares_rows = a.k_cache == a.v_cache && kK == kV;

    for (int i = threadIdx.x; i < kQueries * k_stride; i += kThreads) {
        const int query = first_query + i / k_stride, d = i % k_stride;
        const int t = query / group, head = head_kv * group + query % group;
        q_rows[i] = query < n_queries && d < a.head_dim
                        ? a.q[(static_cast<int64_t>(t) * a.n_head + head) * a.head_dim + d]
                        : 0.0f;
    }

    Query queries[kPerWarp];
    Visible visible[kPerWarp];
    for (int i = 0; i < kPerWarp; ++i) {
        const int query = first_query + warp * kPerWarp + i;
        if (query >= n_queries) continue;
        visible[i] = find_visible(a, query / group);
        if (visible[i].last >= 0 && has_bad_block(a, visible[i])) {
            if (lane == 0) report(a.status, Fault::BadIndex, query / group);
            visible[i] = {};
        }
    }

    // Tokens of one sequence after the other: a run of tokens shares its tiles.
    const int first_token = first_query / group;
    const int last_token = min(a.n_tokens - 1, (first_query + kQueries - 1) / group);
    for (int run = first_token; run <= last_token;) {
        const int sequence = a.sequence[run];
        int run_end = run, begin = INT_MAX, end = -1;
        for (; run_end <= last_token && a.sequence[run_end] == sequence; ++run_end) {
            const int position = a.positions[run_end];
            if (position < 0 || position >= a.max_blocks * a.block_len) continue;
            begin = min(begin, a.window > 0 ? max(0, position - a.window + 1) : 0);
            end = max(end, position);
        }
        if (sequence < 0 || sequence >= a.n_sequences) end = -1;
        if (a.n_stretches > 1) {
            begin = max(begin, stretch * kStretch);
            end = min(end, (stretch + 1) * kStretch - 1);
        }
        for (int first = begin / kTile * kTile; first <= end; first += kTile) {
            const int32_t* table = a.block_table + sequence * a.max_blocks;
            __syncthreads();
            load_tile<kK>(a, a.k_cache, a.k_row_bytes, a.head_dim, k_stride - 4, head_kv, table, first, begin, end,
                          tile, k_stride);
            __syncthreads();
            float weight[kPerWarp];
            const int position = first + lane;
            for (int i = 0; i < kPerWarp; ++i) {
                weight[i] = 0.0f;
                const int t = (first_query + warp * kPerWarp + i) / group;
                if (t < run || t >= run_end || visible[i].last < 0) continue;
                const float* row = tile + lane * k_stride;
                const float* q = q_rows + (warp * kPerWarp + i) * k_stride;
                float4 parts{};
#pragma unroll 8
                for (int d = 0; d < k_stride - 4; d += 4) {  // both are padded with zeros
                    const float4 qd = *reinterpret_cast<const float4*>(q + d),
                                 kd = *reinterpret_cast<const float4*>(row + d);
                    parts.x = __fmaf_rn(qd.x, kd.x, parts.x);
                    parts.y = __fmaf_rn(qd.y, kd.y, parts.y);
                    parts.z = __fmaf_rn(qd.z, kd.z, parts.z);
                    parts.w = __fmaf_rn(qd.w, kd.w, parts.w);
                }
                const float score = ((parts.x + parts.y) + (parts.z + parts.w)) * a.scale;
                const bool sees = position >= max(begin, visible[i].first) && position <= min(end, visible[i].last);
                const float tile_max = warp_max(sees ? score : -INFINITY);
                const float largest = fmaxf(queries[i].largest, tile_max);
                if (largest == -INFINITY) continue;
                const float shrink = exp_exact(queries[i].largest - largest);
                weight[i] = sees ? exp_exact(score - largest) : 0.0f;
                queries[i].denominator = __fmaf_rn(queries[i].denominator, shrink, weight[i]);
                queries[i].largest = largest;
#pragma unroll
                for (int m = 0; m < kMaxDimsPerLane; ++m) queries[i].sums[m] *= shrink;
            }
            int v_stride = k_stride;
            if (!shares_rows) {
                v_stride = a.head_dim_v;
                __syncthreads();
                load_tile<kV>(a, a.v_cache, a.v_row_bytes, a.head_dim_v, a.head_dim_v, head_kv, table, first, begin,
                              end, tile, v_stride);
                __syncthreads();
            }
            for (int i = 0; i < kPerWarp; ++i) {
                if (!__any_sync(kAllLanes, weight[i] != 0.0f)) continue;
                for (int j = 0; j < kTile; ++j) {
                    const float e = __shfl_sync(kAllLanes, weight[i], j);
                    if (e == 0.0f) continue;
#pragma unroll
                    for (int m = 0; m < kMaxDimsPerLane; ++m)
                        if (m * kWarp + lane < a.head_dim_v)
                            queries[i].sums[m] =
                                __fmaf_rn(e, tile[j * v_stride + m * kWarp + lane], queries[i].sums[m]);
                }
            }
        }
        run = run_end;
    }

    for (int i = 0; i < kPerWarp; ++i) {
        const int query = first_query + warp * kPerWarp + i;
        if (query >= n_queries) continue;
        const int head = head_kv * group + query % group;
        const int64_t row = static_cast<int64_t>(query / group) * a.n_head + head;
        float denominator = warp_sum(queries[i].denominator);
        if (a.partial) {
            float* out = a.partial + (row * a.n_stretches + stretch) * (a.head_dim_v + 2);
            for (int m = 0; m < kMaxDimsPerLane; ++m)
                if (m * kWarp + lane < a.head_dim_v) out[m * kWarp + lane] = queries[i].sums[m];
            if (lane == 0) out[a.head_dim_v] = queries[i].largest, out[a.head_dim_v + 1] = denominator;
            continue;
        }
        float rescale = 1.0f;
        if (a.sinks && visible[i].last >= 0) {
            const float largest = fmaxf(queries[i].largest, a.sinks[head]);
            rescale = exp_exact(queries[i].largest - largest);
            denominator = __fmaf_rn(denominator, rescale, exp_exact(a.sinks[head] - largest));
        }
        for (int m = 0; m < kMaxDimsPerLane; ++m)
            if (m * kWarp + lane < a.head_dim_v)
                a.y[row * a.head_dim_v + m * kWarp + lane] =
                    visible[i].last < 0 ? 0.0f : queries[i].sums[m] * rescale / denominator;
    }
}

/// Joins the stretches of one query.
__global__ void join_kernel(Args a) {
    const int64_t row = blockIdx.x;
    const int t = static_cast<int>(row / a.n_head), head = static_cast<int>(row % a.n_head);
    const int64_t step = a.head_dim_v + 2;
    const float* parts = a.partial + row * a.n_stretches * step;
    const int n = min(a.n_stretches, max(0, a.positions[t]) / kStretch + 1);
    float largest = a.sinks ? a.sinks[head] : -INFINITY;
    for (int s = 0; s < n; ++s) largest = fmaxf(largest, parts[s * step + a.head_dim_v]);
    float denominator = a.sinks ? exp_exact(a.sinks[head] - largest) : 0.0f;
    float seen = 0.0f;
    for (int s = 0; s < n; ++s) {
        const float part = parts[s * step + a.head_dim_v + 1];
        seen += part;
        if (part > 0.0f)
            denominator = __fmaf_rn(part, exp_exact(parts[s * step + a.head_dim_v] - largest), denominator);
    }
    for (int d = threadIdx.x; d < a.head_dim_v; d += blockDim.x) {
        float sum = 0.0f;
        for (int s = 0; s < n; ++s)
            if (parts[s * step + a.head_dim_v + 1] > 0.0f)
                sum = __fmaf_rn(parts[s * step + d], exp_exact(parts[s * step + a.head_dim_v] - largest), sum);
        a.y[row * a.head_dim_v + d] = seen > 0.0f ? sum / denominator : 0.0f;
    }
}

int stretches_of(int64_t n_tokens, int64_t max_positions) {
    return n_tokens > kFewTokens ? 1 : static_cast<int>(std::max<int64_t>(1, ceil_div(max_positions, kStretch)));
}

int64_t value_length(const AttentionParams& params, int64_t v_dims) {
    return params.head_dim_v > 0 ? params.head_dim_v : v_dims;
}

template <DType kK, DType kV, int kPerWarp>
void launch_queries(const Args& a, const Launch& launch) {
    constexpr int kQueries = kPerWarp * kWarps;
    const int k_stride = (a.head_dim + 3) / 4 * 4 + 4;
    const auto shared =
        static_cast<int>(sizeof(float)) * (kTile * std::max(k_stride, a.head_dim_v) + kQueries * k_stride);
    auto kernel = attention_kernel<kK, kV, kPerWarp>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    const dim3 grid(static_cast<unsigned>(ceil_div(static_cast<int64_t>(a.n_tokens) * a.group(), kQueries)),
                    static_cast<unsigned>(a.n_head_kv), static_cast<unsigned>(a.n_stretches));
    kernel<<<grid, kThreads, static_cast<size_t>(shared), launch.stream>>>(a);
}

template <DType kK, DType kV>
void launch_types(const Args& a, const Launch& launch) {
    if (a.n_tokens * a.group() > 4 * kWarps && a.head_dim_v <= 256)
        launch_queries<kK, kV, 4>(a, launch);
    else
        launch_queries<kK, kV, 1>(a, launch);
    if (a.partial) join_kernel<<<static_cast<unsigned>(a.n_tokens * a.n_head), 128, 0, launch.stream>>>(a);
}

}  // namespace

size_t attention_scratch(const Node& node) {
    const Shape &q = node.inputs[0].shape(), &k = node.inputs[1].shape(), &table = node.inputs[3].shape();
    const int n = stretches_of(q[0], table[1] * k[2]);
    const int64_t n_dims = value_length(std::get<AttentionParams>(node.params), node.inputs[2].shape()[3]);
    return n == 1 ? 0 : static_cast<size_t>(q[0] * q[1] * n * (n_dims + 2)) * sizeof(float);
}

void attention(const OpCall& call, const Launch& launch) {
    const auto& params = call.param<AttentionParams>();
    const TensorView &q = call.in[0], &k = call.in[1], &v = call.in[2], &table = call.in[3];
    if (q.shape.n_elements() == 0) return;
    Args a{};
    a.q = q.as<const float>();
    a.k_cache = k.data;
    a.v_cache = v.data;
    a.k_row_bytes = cache_row_bytes(k.dtype, k.shape[3]);
    a.v_row_bytes = cache_row_bytes(v.dtype, v.shape[3]);
    a.block_table = table.as<const int32_t>();
    a.sequence = call.in[4].as<const int32_t>();
    a.positions = call.in[5].as<const int32_t>();
    a.sinks = call.in.size() > 6 ? call.in[6].as<const float>() : nullptr;
    a.y = call.out[0].as<float>();
    a.status = status_word(call);
    a.scale = params.scale;
    a.window = params.window;
    a.n_tokens = static_cast<int>(q.shape[0]);
    a.n_head = static_cast<int>(q.shape[1]);
    a.n_head_kv = static_cast<int>(k.shape[1]);
    a.head_dim = static_cast<int>(q.shape[2]);
    a.head_dim_v = static_cast<int>(value_length(params, v.shape[3]));
    a.n_blocks = static_cast<int>(k.shape[0]);
    a.block_len = static_cast<int>(k.shape[2]);
    a.n_sequences = static_cast<int>(table.shape[0]);
    a.max_blocks = static_cast<int>(table.shape[1]);
    a.n_stretches = stretches_of(a.n_tokens, static_cast<int64_t>(a.max_blocks) * a.block_len);
    a.partial = a.n_stretches > 1 ? reinterpret_cast<float*>(call.scratch) : nullptr;
    with_cache_type(k.dtype, [&]<DType kK>(CacheType<kK>) {
        if (v.dtype == kK) return launch_types<kK, kK>(a, launch);
        with_cache_type(v.dtype, [&]<DType kV>(CacheType<kV>) { launch_types<kK, kV>(a, launch); });
    });
}

}  // namespace ggmlx::cuda
