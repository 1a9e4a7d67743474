// Cached keys and values. The result of a (token, head) has one order of additions, so the work may be cut by token, by
// KV head and, when there are few of those, by position (scores) and by dimension (values).

#include <algorithm>
#include <cmath>

#include "ggmlx/backend/cpu/ops/ops.h"
#include "ggmlx/backend/cpu/ops/scratch.h"
#include "ggmlx/core/float_types.h"
#include "ggmlx/reference/exp.h"

namespace ggmlx::cpu {
namespace {

constexpr int64_t kLanes = 8;         // partial sums: scores start at a position that is a multiple of it
constexpr int64_t kMaxHeads = 8;      // query heads of one KV head that are worked on together
constexpr int64_t kScorePiece = 256;  // positions that a thread claims at once
constexpr int64_t kValuePiece = 64;   // dimensions that a thread claims at once

/// Values of a head's result: the whole row of v_cache, or its beginning.
int64_t value_length(const OpCall& call) {
    const int64_t wanted = call.param<AttentionParams>().head_dim_v;
    return wanted > 0 ? wanted : call.in[2].shape[3];
}

/// What one token sees: positions first … last of a sequence, and the blocks that hold them. Nothing if last < first.
struct Visible {
    const int32_t* blocks = nullptr;
    int64_t first = 0, last = -1;
    /// Where its scores begin: they are kept by position, from a multiple of the partial sums on.
    int64_t origin() const { return first / kLanes * kLanes; }
    int64_t n_scores() const { return round_up(last + 1, kLanes) - origin(); }
};

/// The sizes and pointers of one attention op.
struct Attention {
    explicit Attention(const OpCall& c)
        : call(c),
          k_cache(c.in[1]),
          v_cache(c.in[2]),
          n_tokens(c.in[0].shape[0]),
          n_head(c.in[0].shape[1]),
          n_head_kv(k_cache.shape[1]),
          group(n_head / n_head_kv),
          block_len(k_cache.shape[2]),
          head_dim(k_cache.shape[3]),
          head_dim_v(value_length(c)),
          sinks(c.in.size() > 6 ? c.in[6].as<const float>() : nullptr) {}

    /// Heads are worked on in units of one token and at most kMaxHeads query heads of one KV head.
    int64_t units_per_kv_head() const { return ceil_div(group, kMaxHeads); }
    int64_t n_units() const { return n_tokens * n_head_kv * units_per_kv_head(); }

    Visible find_visible(int64_t t) const;
    const std::byte* cache_row(const TensorView& cache, int64_t block, int64_t head_kv, int64_t row) const {
        return cache.data +
               ((block * n_head_kv + head_kv) * block_len + row) * cache.shape[3] * info(cache.dtype).block_bytes;
    }

    const OpCall& call;
    const TensorView &k_cache, &v_cache;
    int64_t n_tokens, n_head, n_head_kv, group, block_len, head_dim, head_dim_v;
    const float* sinks;
};

/// Nothing for padding and for a token whose sequence, position or blocks lie outside their tables.
Visible Attention::find_visible(int64_t t) const {
    const TensorView& table = call.in[3];
    const int32_t sequence = call.in[4].as<const int32_t>()[t], position = call.in[5].as<const int32_t>()[t];
    if (sequence < 0 || sequence >= table.shape[0] || position < 0 || position >= table.shape[1] * block_len) return {};
    const int32_t window = call.param<AttentionParams>().window;
    const Visible visible{table.as<const int32_t>() + sequence * table.shape[1],
                          window > 0 ? std::max(0, position - window + 1) : 0, position};
    for (int64_t b = visible.first / block_len; b <= position / block_len; ++b)
        if (visible.blocks[b] < 0 || visible.blocks[b] >= k_cache.shape[0]) return {};
    return visible;
}

/// One token and some query heads of one KV head.
struct Unit {
    Unit(const Attention& a, int64_t index)
        : token(index / (a.n_head_kv * a.units_per_kv_head())),
          head_kv(index / a.units_per_kv_head() % a.n_head_kv),
          head(head_kv * a.group + index % a.units_per_kv_head() * kMaxHeads),
          n_heads(static_cast<int>(std::min(kMaxHeads, (head_kv + 1) * a.group - head))),
          visible(a.find_visible(token)) {}

    float* y(const Attention& a) const { return a.call.out[0].as<float>() + (token * a.n_head + head) * a.head_dim_v; }

    int64_t token, head_kv, head;
    int n_heads;
    Visible visible;
};

/// Calls f(block's row 0, first position of the piece, its length) for the pieces of [begin, end) that lie in one
/// block.
template <class F>
void for_each_piece(const Attention& a, const Visible& visible, int64_t begin, int64_t end, F f) noexcept {
    for (int64_t j = begin; j < end;) {
        const int64_t n = std::min(end, (j / a.block_len + 1) * a.block_len) - j;
        f(visible.blocks[j / a.block_len], j, n);
        j += n;
    }
}

/// Scores of positions [begin, end); scores has a row of `stride` floats per head, beginning at visible.origin().
void fill_scores(const Attention& a, const Unit& u, int64_t begin, int64_t end, float* scores, int64_t stride,
                 const CpuKernels& kernels) noexcept {
    const float* q = a.call.in[0].as<const float>() + (u.token * a.n_head + u.head) * a.head_dim;
    const float scale = a.call.param<AttentionParams>().scale;
    for_each_piece(a, u.visible, begin, end, [&](int32_t block, int64_t j, int64_t n) {
        const std::byte* rows = a.cache_row(a.k_cache, block, u.head_kv, j % a.block_len);
        kernels.attention_scores[static_cast<size_t>(a.k_cache.dtype)](
            {q, u.n_heads, a.head_dim, rows, n, scale, scores + (j - u.visible.origin()), stride});
    });
}

/// Turns the scores of head h into weights and returns the denominator. Places before the first position and after the
/// last get the score -inf, whose weight 0 changes no sum.
float weigh(const Attention& a, const Unit& u, int h, float* scores, const CpuKernels& kernels) noexcept {
    const Visible& v = u.visible;
    std::fill(scores, scores + (v.first - v.origin()), -INFINITY);
    std::fill(scores + (v.last + 1 - v.origin()), scores + v.n_scores(), -INFINITY);
    float largest = kernels.largest(scores, v.n_scores());
    const float* sink = a.sinks ? a.sinks + u.head + h : nullptr;
    if (sink) largest = largest > *sink ? largest : *sink;
    const float sum = kernels.exp_sum(scores, largest, scores, v.n_scores());
    return sink ? sum + exp_poly(*sink - largest) : sum;
}

/// Dims [begin, end) of y = Σ weight · v / denominator for all heads of the unit.
void add_values(const Attention& a, const Unit& u, const float* weights, int64_t stride, const float* denominators,
                int64_t begin, int64_t end, const CpuKernels& kernels) noexcept {
    float* y = u.y(a);
    for (int h = 0; h < u.n_heads; ++h) std::fill(y + h * a.head_dim_v + begin, y + h * a.head_dim_v + end, 0.0f);
    for_each_piece(a, u.visible, u.visible.first, u.visible.last + 1, [&](int32_t block, int64_t j, int64_t n) {
        const std::byte* rows = a.cache_row(a.v_cache, block, u.head_kv, j % a.block_len);
        kernels.attention_values[static_cast<size_t>(a.v_cache.dtype)]({weights + (j - u.visible.origin()), stride,
                                                                        u.n_heads, rows, n, a.v_cache.shape[3], begin,
                                                                        end, y, a.head_dim_v});
    });
    for (int h = 0; h < u.n_heads; ++h) {
        float* head = y + h * a.head_dim_v + begin;
        kernels.divide(denominators[h], head, head, end - begin);
    }
}

/// Rows without anything visible: zeros, and a report unless they are padding.
void finish_invisible(const Attention& a, const Unit& u) noexcept {
    std::fill(u.y(a), u.y(a) + u.n_heads * a.head_dim_v, 0.0f);
    if (a.call.in[4].as<const int32_t>()[u.token] != -1) a.call.status->report(Fault::BadIndex, u.token);
}

/// Floats per head that scores may need.
int64_t score_stride(int64_t max_positions, int32_t window) {
    const int64_t most = window > 0 ? std::min<int64_t>(window, max_positions) : max_positions;
    return round_up(most + 2 * kLanes, 16);
}

/// Fewer units than this per thread are cut further.
bool cut_finely(int64_t n_units, int n_threads) { return n_units < 2 * n_threads; }

/// One unit per claim.
void run_units(const Attention& a, float* scratch, int64_t stride, Worker& worker) noexcept {
    float* scores = scratch + worker.team.index() * kMaxHeads * stride;
    worker.team.share(a.n_units(), 1, [&](int64_t i, int64_t) {
        const Unit u(a, i);
        if (u.visible.last < 0) return finish_invisible(a, u);
        fill_scores(a, u, u.visible.first, u.visible.last + 1, scores, stride, worker.kernels);
        float denominators[kMaxHeads];
        for (int h = 0; h < u.n_heads; ++h) denominators[h] = weigh(a, u, h, scores + h * stride, worker.kernels);
        add_values(a, u, scores, stride, denominators, 0, a.head_dim_v, worker.kernels);
    });
}

/// Three phases, each cut within units: scores by position, softmax by head, values by dimension.
void run_pieces(const Attention& a, float* scratch, float* denominators, int64_t stride, Worker& worker) noexcept {
    const int64_t unit_floats = kMaxHeads * stride;
    const int64_t max_scores = ceil_div(stride, kScorePiece), max_values = ceil_div(a.head_dim_v, kValuePiece);
    worker.team.share(a.n_units() * max_scores, 1, [&](int64_t i, int64_t) {
        const Unit u(a, i / max_scores);
        if (u.visible.last < 0) {
            if (i % max_scores == 0) finish_invisible(a, u);
            return;
        }
        const int64_t begin = std::max(u.visible.first, u.visible.origin() + i % max_scores * kScorePiece);
        const int64_t end = std::min(u.visible.last + 1, u.visible.origin() + (i % max_scores + 1) * kScorePiece);
        fill_scores(a, u, begin, end, scratch + i / max_scores * unit_floats, stride, worker.kernels);
    });
    worker.team.barrier();
    worker.team.share(a.n_units() * kMaxHeads, 1, [&](int64_t i, int64_t) {
        const Unit u(a, i / kMaxHeads);
        const int h = static_cast<int>(i % kMaxHeads);
        if (u.visible.last < 0 || h >= u.n_heads) return;
        denominators[i] = weigh(a, u, h, scratch + i * stride, worker.kernels);
    });
    worker.team.barrier();
    worker.team.share(a.n_units() * max_values, 1, [&](int64_t i, int64_t) {
        const int64_t unit = i / max_values, begin = i % max_values * kValuePiece;
        const Unit u(a, unit);
        if (u.visible.last < 0) return;
        add_values(a, u, scratch + unit * unit_floats, stride, denominators + unit * kMaxHeads, begin,
                   std::min(begin + kValuePiece, a.head_dim_v), worker.kernels);
    });
}

/// Writes n values of a cache row.
void store_row(DType dtype, const float* x, int64_t n, std::byte* row) noexcept {
    const auto convert = [&](auto* out, auto from_float) { std::transform(x, x + n, out, from_float); };
    switch (dtype) {
        case DType::F16:
            return convert(reinterpret_cast<uint16_t*>(row), f32_to_f16);
        case DType::BF16:
            return convert(reinterpret_cast<uint16_t*>(row), f32_to_bf16);
        case DType::F8_E4M3:
            return convert(reinterpret_cast<uint8_t*>(row), f32_to_f8_e4m3);
        default:
            std::copy(x, x + n, reinterpret_cast<float*>(row));
    }
}

}  // namespace

void attention_heavy(const OpCall& call, Worker& worker) noexcept {
    const Attention a(call);
    const int64_t stride = score_stride(call.in[3].shape[1] * a.block_len, call.param<AttentionParams>().window);
    Scratch scratch(call.scratch);
    if (!cut_finely(a.n_units(), worker.team.n_threads()))
        return run_units(a, scratch.take<float>(worker.team.n_threads() * kMaxHeads * stride), stride, worker);
    auto* scores = scratch.take<float>(a.n_units() * kMaxHeads * stride);
    auto* denominators = scratch.take<float>(a.n_units() * kMaxHeads);
    run_pieces(a, scores, denominators, stride, worker);
}

size_t attention_scratch(const Node& node, int n_threads) {
    const Shape &q = node.inputs[0].shape(), &cache = node.inputs[1].shape(), &table = node.inputs[3].shape();
    const int64_t stride = score_stride(table[1] * cache[2], std::get<AttentionParams>(node.params).window);
    const int64_t n_units = q[0] * cache[1] * ceil_div(q[1] / cache[1], kMaxHeads);
    Scratch scratch(nullptr);
    const int64_t n_at_once = cut_finely(n_units, n_threads) ? n_units : n_threads;
    scratch.take<float>(n_at_once * kMaxHeads * stride);
    scratch.take<float>(n_units * kMaxHeads);
    return scratch.used_bytes();
}

void cache_append_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView &cache = call.out[0], &x = call.in[1];
    const int32_t* slots = call.in[2].as<const int32_t>();
    const int64_t n_head = x.shape[1], n = x.shape[2], block_len = cache.shape[2];
    const int64_t row_bytes = n * info(cache.dtype).block_bytes;
    worker.team.share(x.shape[0] * n_head, std::max<int64_t>(1, 1024 / std::max<int64_t>(n, 1)),
                      [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i) {
                              const int64_t slot = slots[i / n_head], head = i % n_head;
                              if (slot < 0 || slot >= cache.shape[0] * block_len) {
                                  if (slot != -1 && head == 0) call.status->report(Fault::BadIndex, i / n_head);
                                  continue;
                              }
                              const int64_t row = (slot / block_len * n_head + head) * block_len + slot % block_len;
                              store_row(cache.dtype, x.as<const float>() + i * n, n, cache.data + row * row_bytes);
                          }
                      });
}

}  // namespace ggmlx::cpu
