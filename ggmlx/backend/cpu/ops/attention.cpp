// Cached keys and values. Rows of the cache are unpacked to float32 a piece at a time, small enough for the first
// cache, and serve all queries that read them before the next piece comes. The result of a (token, head) has one order
// of additions, so the work may be cut by token, by head and, when there are few of those, by position (scores) and by
// dimension (values).

#include <algorithm>
#include <cmath>

#include "ggmlx/backend/cpu/ops/ops.h"
#include "ggmlx/backend/cpu/ops/scratch.h"
#include "ggmlx/reference/exp.h"

namespace ggmlx::cpu {
namespace {

constexpr int64_t kLanes = 8;           // partial sums: scores start at a position that is a multiple of it
constexpr int64_t kUnitQueries = 16;    // queries that share unpacked rows when there is enough work
constexpr int64_t kPieceFloats = 4096;  // unpacked at once: half of a first cache of 32 KiB
constexpr int64_t kScorePiece = 256;    // positions that a thread claims at once
constexpr int64_t kValuePiece = 128;    // dimensions that a thread works on at once

/// Values of a head's result: the whole row of v_cache, or its beginning.
int64_t value_length(const AttentionParams& params, const Shape& v_cache) {
    return params.head_dim_v > 0 ? params.head_dim_v : v_cache[3];
}

/// What one token sees: positions first … last of a sequence, and the blocks that hold them. Nothing if last < first.
struct Visible {
    const int32_t* blocks = nullptr;
    int64_t first = 0, last = -1;
    /// Where its scores begin: they are kept by position, from a multiple of the partial sums on.
    int64_t origin() const { return first / kLanes * kLanes; }
    int64_t n_scores() const { return round_up(last + 1, kLanes) - origin(); }
};

/// The sizes of an attention op and how it is cut into units: some tokens, some query heads of one KV head.
struct Sizes {
    Sizes(const AttentionParams& params, const Shape& q, const Shape& k_cache, const Shape& v_cache, const Shape& table)
        : n_tokens(q[0]),
          n_head(q[1]),
          n_head_kv(k_cache[1]),
          group(n_head / n_head_kv),
          block_len(k_cache[2]),
          head_dim(q[2]),
          head_dim_v(value_length(params, v_cache)),
          max_positions(table[1] * block_len),
          unit_tokens(std::max<int64_t>(1, std::min(kUnitQueries / group, n_tokens))),
          unit_heads(std::min(group, kUnitQueries)),
          stride(score_stride(params.window)) {}

    int64_t n_token_units() const { return ceil_div(n_tokens, unit_tokens); }
    int64_t n_units() const { return n_head_kv * ceil_div(group, unit_heads) * n_token_units(); }
    int64_t unit_queries() const { return unit_tokens * unit_heads; }
    /// With less work than this per thread units are cut further; then each has all heads of its KV head, so that a row
    /// of the cache is read once.
    bool cut_finely(int n_threads) const { return n_units() < 3 * n_threads; }
    void take_all_heads() { unit_heads = group; }

    int64_t n_tokens, n_head, n_head_kv, group, block_len, head_dim, head_dim_v, max_positions;
    int64_t unit_tokens, unit_heads;
    int64_t stride;  ///< floats for the scores of one query

  private:
    int64_t score_stride(int32_t window) const {
        const int64_t most = window > 0 ? std::min<int64_t>(window, max_positions) : max_positions;
        return round_up(most + 2 * kLanes, 16);
    }
};

/// Rows of `dims` values that are unpacked at once, a multiple of the eight that the score kernel takes.
int64_t piece_rows(int64_t dims) { return std::clamp<int64_t>(kPieceFloats / round_up(dims, kLanes) / 8 * 8, 8, 128); }
/// The most floats that takes, for any number of dims up to this.
int64_t piece_floats(int64_t dims) { return std::max(kPieceFloats, 8 * round_up(dims, kLanes)); }

/// The scratch memory of one op.
struct Memory {
    Memory(std::byte* base, const Sizes& s, int n_threads) : scratch(base) {
        rows_each = piece_floats(std::max(s.head_dim, kValuePiece));
        queries_each = s.unit_queries();
        rows = scratch.take<float>(n_threads * rows_each);
        query_stride = round_up(queries_each, 4);
        queries = scratch.take<AttentionQuery>(n_threads * query_stride);
        const int64_t n_units_at_once = s.cut_finely(n_threads) ? s.n_units() : n_threads;
        scores = scratch.take<float>(n_units_at_once * queries_each * s.stride);
        denominators = scratch.take<float>(n_units_at_once * queries_each);
    }
    Scratch scratch;
    int64_t rows_each, queries_each;
    int64_t query_stride;     ///< whole cache lines, because threads write their queries all the time
    float* rows;              ///< [n_threads][rows_each]
    AttentionQuery* queries;  ///< [n_threads][query_stride]
    float* scores;            ///< [a unit, or a thread][queries_each][stride]
    float* denominators;      ///< the same without stride
};

/// Sizes for the mode that they lead to.
Sizes sizes_of(const AttentionParams& params, const Shape& q, const Shape& k_cache, const Shape& v_cache,
               const Shape& table, int n_threads) {
    Sizes s(params, q, k_cache, v_cache, table);
    if (s.cut_finely(n_threads)) s.take_all_heads();
    return s;
}

/// One op and what one thread needs for it.
struct Attention : Sizes {
    Attention(const OpCall& c, Worker& w, const Memory& m, const Sizes& sizes)
        : Sizes(sizes),
          call(c),
          params(c.param<AttentionParams>()),
          k_cache(c.in[1]),
          v_cache(c.in[2]),
          sinks(c.in.size() > 6 ? c.in[6].as<const float>() : nullptr),
          kernels(w.kernels),
          rows(m.rows + w.team.index() * m.rows_each),
          queries(m.queries + w.team.index() * m.query_stride) {}

    Visible find_visible(int64_t t) const;
    Visible find_range(int64_t t) const;

    const OpCall& call;
    const AttentionParams& params;
    const TensorView &k_cache, &v_cache;
    const float* sinks;
    const CpuKernels& kernels;
    float* rows;              ///< unpacked rows of the cache
    AttentionQuery* queries;  ///< of the unit
};

/// Nothing for padding and for a token whose sequence or position lies outside the table.
Visible Attention::find_range(int64_t t) const {
    const TensorView& table = call.in[3];
    const int32_t sequence = call.in[4].as<const int32_t>()[t], position = call.in[5].as<const int32_t>()[t];
    if (sequence < 0 || sequence >= table.shape[0] || position < 0 || position >= max_positions) return {};
    return {table.as<const int32_t>() + sequence * table.shape[1],
            params.window > 0 ? std::max(0, position - params.window + 1) : 0, position};
}

/// Nor for one with blocks outside the cache.
Visible Attention::find_visible(int64_t t) const {
    const Visible visible = find_range(t);
    for (int64_t b = visible.first / block_len; b * block_len <= visible.last; ++b)
        if (visible.blocks[b] < 0 || visible.blocks[b] >= k_cache.shape[0]) return {};
    return visible;
}

/// Some tokens in a row, some query heads of one KV head; query i is head i mod n_heads of token i / n_heads.
struct Unit {
    Unit(const Attention& a, int64_t index)
        : token(index % a.n_token_units() * a.unit_tokens),
          n_tokens(std::min(a.unit_tokens, a.n_tokens - token)),
          head_kv(index / a.n_token_units() / ceil_div(a.group, a.unit_heads)),
          head(head_kv * a.group + index / a.n_token_units() % ceil_div(a.group, a.unit_heads) * a.unit_heads),
          n_heads(std::min(a.unit_heads, (head_kv + 1) * a.group - head)) {
        for (int64_t t = 0; t < n_tokens; ++t) visible[t] = a.find_visible(token + t);
    }

    int64_t n_queries() const { return n_tokens * n_heads; }
    const Visible& seen_by(int64_t query) const { return visible[query / n_heads]; }
    const float* q(const Attention& a, int64_t query) const {
        return a.call.in[0].as<const float>() + row(a, query) * a.head_dim;
    }
    float* y(const Attention& a, int64_t query) const {
        return a.call.out[0].as<float>() + row(a, query) * a.head_dim_v;
    }

    int64_t token, n_tokens, head_kv, head, n_heads;
    Visible visible[kUnitQueries];

  private:
    int64_t row(const Attention& a, int64_t query) const {
        return (token + query / n_heads) * a.n_head + head + query % n_heads;
    }
};

/// Queries [begin, end) of a unit, all of tokens of one sequence, and the positions that any of them sees.
struct Run {
    int64_t begin, end;
    const int32_t* blocks;
    int64_t first, last;
};

/// Calls f(run) for the runs of tokens of one sequence among queries [begin, end).
template <class F>
void for_each_run(const Unit& u, int64_t begin, int64_t end, F f) noexcept {
    for (int64_t i = begin; i < end;) {
        const Visible& v = u.seen_by(i);
        Run run{i, i + 1, v.blocks, v.first, v.last};
        for (; run.end < end && u.seen_by(run.end).blocks == v.blocks; ++run.end) {
            run.first = std::min(run.first, u.seen_by(run.end).first);
            run.last = std::max(run.last, u.seen_by(run.end).last);
        }
        if (v.blocks) f(run);
        i = run.end;
    }
}

/// Points the run's queries at what they see of positions [j, j + n).
void aim_queries(const Attention& a, const Unit& u, const Run& run, int64_t j, int64_t n, float* scores) noexcept {
    for (int64_t i = run.begin; i < run.end; ++i) {
        const Visible& v = u.seen_by(i);
        AttentionQuery& query = a.queries[i];
        query.begin = std::clamp<int64_t>(v.first - j, 0, n);
        query.end = std::clamp<int64_t>(v.last + 1 - j, query.begin, n);
        query.scores = scores + i * a.stride + (j + query.begin - v.origin());
    }
}

/// Dims of a cache's rows, and the kernel that unpacks them.
struct RowPart {
    const TensorView& cache;
    int64_t dim_begin, dim_end;
    void (*unpack)(const UnpackArgs& args) noexcept;
};

/// Walks positions [begin, end) of a run in pieces: unpacks their rows, aims the run's queries at them and calls
/// f(number of rows, the rows of the next piece).
template <class F>
void for_each_piece(const Attention& a, const Unit& u, const Run& run, int64_t begin, int64_t end, const RowPart& part,
                    float* scores, F f) noexcept {
    const DTypeInfo& type = info(part.cache.dtype);
    const int64_t row_bytes = cache_row_bytes(part.cache.dtype, part.cache.shape[3]);
    const int64_t most = piece_rows(part.dim_end - part.dim_begin);
    const auto length = [&](int64_t j) { return std::min({end - j, a.block_len - j % a.block_len, most}); };
    const auto rows_at = [&](int64_t j) {
        const int64_t block = run.blocks[j / a.block_len];
        const int64_t row = (block * a.n_head_kv + u.head_kv) * a.block_len + j % a.block_len;
        return part.cache.data + row * row_bytes;
    };
    RowsAhead ahead{nullptr, row_bytes, cache_row_bytes(part.cache.dtype, part.dim_end - part.dim_begin), 0};
    for (int64_t j = begin, n = length(j); j < end; j += n, n = ahead.n_rows) {
        part.unpack({rows_at(j), row_bytes, n, part.dim_begin, part.dim_end, a.rows});
        aim_queries(a, u, run, j, n, scores);
        ahead.n_rows = j + n < end ? length(j + n) : 0;
        if (ahead.n_rows > 0)
            ahead.first =
                reinterpret_cast<const char*>(rows_at(j + n)) + part.dim_begin / type.block_len * type.block_bytes;
        f(n, ahead);
    }
}

/// Scores of the unit's queries at positions [begin, end); scores has a row of `stride` floats for each.
void fill_scores(const Attention& a, const Unit& u, int64_t begin, int64_t end, float* scores) noexcept {
    for (int64_t i = 0; i < u.n_queries(); ++i) a.queries[i].q = u.q(a, i);
    const RowPart keys{a.k_cache, 0, a.head_dim, a.kernels.unpack_keys[static_cast<size_t>(a.k_cache.dtype)]};
    for_each_run(u, 0, u.n_queries(), [&](const Run& run) {
        for_each_piece(a, u, run, std::max(begin, run.first), std::min(end, run.last + 1), keys, scores,
                       [&](int64_t n, const RowsAhead& ahead) {
                           a.kernels.attention_scores({a.queries + run.begin, static_cast<int>(run.end - run.begin),
                                                       a.rows, n, a.head_dim, a.params.scale, ahead});
                       });
    });
}

/// Turns the scores of a query into weights and returns the denominator. Places before the first position and after the
/// last get the score -inf, whose weight 0 changes no sum.
float weigh(const Attention& a, const Unit& u, int64_t query, float* scores) noexcept {
    const Visible& v = u.seen_by(query);
    std::fill(scores, scores + (v.first - v.origin()), -INFINITY);
    std::fill(scores + (v.last + 1 - v.origin()), scores + v.n_scores(), -INFINITY);
    float largest = a.kernels.largest(scores, v.n_scores());
    const float* sink = a.sinks ? a.sinks + u.head + query % u.n_heads : nullptr;
    if (sink) largest = largest > *sink ? largest : *sink;
    const float sum = a.kernels.exp_sum(scores, largest, scores, v.n_scores());
    return sink ? sum + exp_poly(*sink - largest) : sum;
}

/// A part of a unit's result: some queries, some dims.
struct Part {
    int64_t query_begin, query_end, dim_begin, dim_end;
};

/// y = Σ weight · v / denominator for the part. scores: the weights.
void add_values(const Attention& a, const Unit& u, const Part& part, float* scores,
                const float* denominators) noexcept {
    const int64_t n_dims = part.dim_end - part.dim_begin;
    for (int64_t i = part.query_begin; i < part.query_end; ++i) {
        a.queries[i].y = u.y(a, i) + part.dim_begin;
        std::fill_n(a.queries[i].y, n_dims, 0.0f);
    }
    const RowPart values{a.v_cache, part.dim_begin, part.dim_end,
                         a.kernels.unpack_values[static_cast<size_t>(a.v_cache.dtype)]};
    for_each_run(u, part.query_begin, part.query_end, [&](const Run& run) {
        for_each_piece(a, u, run, run.first, run.last + 1, values, scores, [&](int64_t, const RowsAhead& ahead) {
            a.kernels.attention_values(
                {a.queries + run.begin, static_cast<int>(run.end - run.begin), a.rows, n_dims, ahead});
        });
        for (int64_t i = run.begin; i < run.end; ++i)
            a.kernels.divide(denominators[i], a.queries[i].y, a.queries[i].y, n_dims);
    });
}

/// Reports tokens that see nothing and are not padding, once among the units of all heads; add_values gives them zeros.
void report_invisible(const Attention& a, const Unit& u) noexcept {
    for (int64_t t = 0; t < u.n_tokens; ++t)
        if (u.head == 0 && !u.visible[t].blocks && a.call.in[4].as<const int32_t>()[u.token + t] != -1)
            a.call.status->report(Fault::BadIndex, u.token + t);
}

/// One unit per claim.
void run_units(const Attention& a, const Memory& m, Worker& worker) noexcept {
    float* scores = m.scores + worker.team.index() * m.queries_each * a.stride;
    float* denominators = m.denominators + worker.team.index() * m.queries_each;
    worker.team.share(a.n_units(), 1, [&](int64_t index, int64_t) {
        const Unit u(a, index);
        report_invisible(a, u);
        fill_scores(a, u, 0, a.max_positions, scores);
        for (int64_t i = 0; i < u.n_queries(); ++i)
            if (u.seen_by(i).blocks) denominators[i] = weigh(a, u, i, scores + i * a.stride);
        for (int64_t d = 0; d < a.head_dim_v; d += kValuePiece)
            add_values(a, u, {0, u.n_queries(), d, std::min(d + kValuePiece, a.head_dim_v)}, scores, denominators);
    });
}

/// Positions that any token of the op sees, in pieces for claiming.
struct Extent {
    explicit Extent(const Attention& a) {
        int64_t first = a.max_positions, last = -1;
        for (int64_t t = 0; t < a.n_tokens; ++t) {
            const Visible v = a.find_range(t);
            if (!v.blocks) continue;
            first = std::min(first, v.first);
            last = std::max(last, v.last);
        }
        begin = first / kScorePiece * kScorePiece;
        n_pieces = last < 0 ? 0 : ceil_div(last + 1 - begin, kScorePiece);
    }
    int64_t begin, n_pieces;
};

/// How units' results are cut so that all threads have something to do. Parts with fewer queries unpack the same rows
/// again, which costs little beside many queries; parts with fewer dims do not, down to what a cache line holds.
struct ValueCut {
    ValueCut(const Attention& a, int n_threads)
        : n_queries(a.unit_queries()), n_dims(std::min(kValuePiece, a.head_dim_v)) {
        while (a.n_units() * n_parts(a) < 2 * n_threads) {
            if (n_queries > 16)
                n_queries = round_up(n_queries / 2, 8);
            else if (n_dims > 32)
                n_dims = round_up(n_dims / 2, 32);
            else if (n_queries > 4)
                n_queries = round_up(n_queries / 2, 4);
            else
                break;
        }
    }
    int64_t n_dim_parts(const Attention& a) const { return ceil_div(a.head_dim_v, n_dims); }
    int64_t n_parts(const Attention& a) const { return ceil_div(a.unit_queries(), n_queries) * n_dim_parts(a); }
    Part part(const Attention& a, const Unit& u, int64_t i) const {
        const int64_t query = i / n_dim_parts(a) * n_queries, dim = i % n_dim_parts(a) * n_dims;
        return {std::min(query, u.n_queries()), std::min(query + n_queries, u.n_queries()), dim,
                std::min(dim + n_dims, a.head_dim_v)};
    }
    int64_t n_queries, n_dims;
};

/// Three phases, each cut within units: scores by position, softmax by query, values by dimension.
void run_pieces(const Attention& a, const Memory& m, Worker& worker) noexcept {
    const int64_t unit_floats = m.queries_each * a.stride;
    const Extent extent(a);
    worker.team.share(a.n_units() * extent.n_pieces, 1, [&](int64_t i, int64_t) {
        const int64_t unit = i / extent.n_pieces, begin = extent.begin + i % extent.n_pieces * kScorePiece;
        fill_scores(a, Unit(a, unit), begin, begin + kScorePiece, m.scores + unit * unit_floats);
    });
    worker.team.barrier();
    worker.team.share(a.n_units() * m.queries_each, 1, [&](int64_t i, int64_t) {
        const Unit u(a, i / m.queries_each);
        const int64_t query = i % m.queries_each;
        if (query == 0) report_invisible(a, u);
        if (query < u.n_queries() && u.seen_by(query).blocks)
            m.denominators[i] = weigh(a, u, query, m.scores + i * a.stride);
    });
    worker.team.barrier();
    const ValueCut cut(a, worker.team.n_threads());
    const int64_t n_parts = cut.n_parts(a);
    worker.team.share(a.n_units() * n_parts, 1, [&](int64_t i, int64_t) {
        const int64_t unit = i / n_parts;
        const Unit u(a, unit);
        add_values(a, u, cut.part(a, u, i % n_parts), m.scores + unit * unit_floats,
                   m.denominators + unit * m.queries_each);
    });
}

}  // namespace

void attention_heavy(const OpCall& call, Worker& worker) noexcept {
    const int n_threads = worker.team.n_threads();
    const Sizes sizes = sizes_of(call.param<AttentionParams>(), call.in[0].shape, call.in[1].shape, call.in[2].shape,
                                 call.in[3].shape, n_threads);
    const Memory memory(call.scratch, sizes, n_threads);
    const Attention a(call, worker, memory, sizes);
    if (sizes.cut_finely(n_threads))
        run_pieces(a, memory, worker);
    else
        run_units(a, memory, worker);
}

size_t attention_scratch(const Node& node, const TeamSize& team) {
    const auto& params = std::get<AttentionParams>(node.params);
    const Sizes sizes = sizes_of(params, node.inputs[0].shape(), node.inputs[1].shape(), node.inputs[2].shape(),
                                 node.inputs[3].shape(), team.n_threads);
    return Memory(nullptr, sizes, team.n_threads).scratch.used_bytes();
}

}  // namespace ggmlx::cpu
