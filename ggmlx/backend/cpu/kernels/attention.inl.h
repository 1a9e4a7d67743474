#pragma once
// The two products of attention over a piece of unpacked cache rows, for all queries that read them. The driver
// (ops/attention.cpp) walks the pieces of a sequence.

#include "ggmlx/backend/cpu/kernels/lanes.inl.h"

namespace ggmlx {

/// Asks for rows [begin, end) of those that come next, as far as there are so many.
template <class Isa>
void prefetch_rows(const RowsAhead& ahead, int64_t begin, int64_t end) {
    constexpr int64_t kLine = 64;
    for (int64_t r = begin; r < end && r < ahead.n_rows; ++r)
        for (int64_t at = 0; at < ahead.n_bytes; at += kLine) Isa::prefetch(ahead.first + r * ahead.row_bytes + at);
}

/// Adds the products of R · kSideBySide rows and C queries, n chunks of theirs, to the partial sums at[row][query]. A
/// row has row_chunks.
template <class Isa, int R, int C>
void add_key_chunks(const float* rows, int64_t row_chunks, const float* const (&q)[C], int64_t n,
                    typename Isa::Rows (&at)[R][C]) {
    using Rows = typename Isa::Rows;
    for (int64_t chunk = 0; chunk < n; ++chunk) {
        Rows x[C];
        for (int c = 0; c < C; ++c) x[c] = Isa::repeat8(q[c] + 8 * chunk);
        for (int r = 0; r < R; ++r) {
            const Rows keys = Isa::load_rows(rows + (r * row_chunks + chunk) * Isa::kRows);
            for (int c = 0; c < C; ++c) at[r][c] = Isa::fma(keys, x[c], at[r][c]);
        }
    }
}

/// Eight partial sums of R · kSideBySide rows and C queries, to sums[query][row].
template <class Isa, int R, int C>
void dot_key_rows(const float* rows, int64_t head_dim, const float* const (&q)[C], float (&sums)[C][8][8],
                  int first_row) {
    using Rows = typename Isa::Rows;
    constexpr int kSideBySide = Isa::kRows / 8;
    const int64_t n_chunks = (head_dim + 7) / 8, n_whole = head_dim / 8;
    Rows at[R][C];
    for (auto& row : at)
        for (Rows& sum : row) sum = Isa::splat_rows(0.0f);
    add_key_chunks<Isa, R, C>(rows, n_chunks, q, n_whole, at);
    if (n_whole < n_chunks) {  // a partial sum without a term gains 0 · a finite value, which changes no score
        float last[C][8];
        const float* last_of[C];
        for (int c = 0; c < C; ++c) {
            for (int64_t i = 0; i < 8; ++i) last[c][i] = 8 * n_whole + i < head_dim ? q[c][8 * n_whole + i] : 0.0f;
            last_of[c] = last[c];
        }
        add_key_chunks<Isa, R, C>(rows + n_whole * Isa::kRows, n_chunks, last_of, 1, at);
    }
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) Isa::store_rows(sums[c][first_row + r * kSideBySide], at[r][c]);
}

/// Writes the scores of rows [row, row + 8) that the query sees.
template <class Isa>
void store_scores(const AttentionQuery& query, int64_t row, typename Isa::F8 scores) {
    if (query.begin <= row && row + 8 <= query.end) return Isa::store8(query.scores + (row - query.begin), scores);
    float lanes[8];
    Isa::store8(lanes, scores);
    for (int64_t i = 0; i < 8; ++i)
        if (query.begin <= row + i && row + i < query.end) query.scores[row + i - query.begin] = lanes[i];
}

/// C queries, all rows, eight at a time.
template <class Isa, int C>
void score_queries(const ScoreArgs& a, const AttentionQuery* queries) {
    constexpr int kSideBySide = Isa::kRows / 8;
    constexpr int R = kSideBySide == 2 ? 4 : 8 / C;  // sums at once: enough to hide the latency of one, few enough to
                                                     // stay in registers; C = 4: 16 of 32 or 8 of 16
    const float* q[C];
    int64_t begin = queries[0].begin, end = queries[0].end;
    for (int c = 0; c < C; ++c) {
        q[c] = queries[c].q;
        begin = queries[c].begin < begin ? queries[c].begin : begin;
        end = queries[c].end > end ? queries[c].end : end;
    }
    const int64_t n_chunks = (a.head_dim + 7) / 8;
    const auto scale = Isa::splat8(a.scale);
    const bool asks_ahead = queries == a.queries;  // once for all
    for (int64_t row = begin / 8 * 8; row < end; row += 8) {
        alignas(64) float sums[C][8][8];
        for (int r = 0; r < 8; r += R * kSideBySide) {
            if (asks_ahead) prefetch_rows<Isa>(a.ahead, row + r, row + r + R * kSideBySide);
            dot_key_rows<Isa, R, C>(a.keys + (row + r) * n_chunks * 8, a.head_dim, q, sums, r);
        }
        for (int c = 0; c < C; ++c) store_scores<Isa>(queries[c], row, Isa::mul(Isa::reduce8(sums[c]), scale));
    }
}

/// score[j] = (q · k_j) · scale for the rows j that each query sees.
template <class Isa>
void attention_scores(const ScoreArgs& a) noexcept {
    int i = 0;
    for (; a.n_queries - i >= 4; i += 4) score_queries<Isa, 4>(a, a.queries + i);
    for (; a.n_queries - i >= 2; i += 2) score_queries<Isa, 2>(a, a.queries + i);
    if (i < a.n_queries) score_queries<Isa, 1>(a, a.queries + i);
}

/// Vectors of dims: all lanes there are, or eight.
template <class Isa>
struct AllLanes {
    using V = typename Isa::Rows;
    static constexpr int kCount = Isa::kRows;
    static V load(const float* p) { return Isa::load_rows(p); }
    static V splat(float x) { return Isa::splat_rows(x); }
    static void store(float* p, V a) { Isa::store_rows(p, a); }
};
template <class Isa>
struct EightLanes {
    using V = typename Isa::F8;
    static constexpr int kCount = 8;
    static V load(const float* p) { return Isa::load8(p); }
    static V splat(float x) { return Isa::splat8(x); }
    static void store(float* p, V a) { Isa::store8(p, a); }
};

/// D vectors of dims of H queries over n_rows rows: y[h] = fma(weights[h][j], v_j, y[h]), j in order.
template <class Isa, class Lanes, int H, int D>
void add_value_columns(const float* const (&weights)[H], const float* values, int64_t row_floats, int64_t n_rows,
                       float* const (&y)[H]) {
    using V = typename Lanes::V;
    V sums[H][D];
    for (int h = 0; h < H; ++h)
        for (int i = 0; i < D; ++i) sums[h][i] = Lanes::load(y[h] + Lanes::kCount * i);
    for (int64_t j = 0; j < n_rows; ++j, values += row_floats) {
        V v[D];
        for (int i = 0; i < D; ++i) v[i] = Lanes::load(values + Lanes::kCount * i);
        for (int h = 0; h < H; ++h) {
            const V weight = Lanes::splat(weights[h][j]);
            for (int i = 0; i < D; ++i) sums[h][i] = Isa::fma(weight, v[i], sums[h][i]);
        }
    }
    for (int h = 0; h < H; ++h)
        for (int i = 0; i < D; ++i) Lanes::store(y[h] + Lanes::kCount * i, sums[h][i]);
}

/// What H queries add over rows that all of them see, and how far they are: dims [0, d) are done.
template <int H>
struct ValueSums {
    const float* weights[H];  ///< of the first of the rows
    float* y[H];              ///< dim d
    const float* values;      ///< of the first of the rows
    int64_t row_floats, n_rows;
    int64_t d;
    int64_t rows_ahead;  ///< to ask for with every eight dims
};

/// As many tiles of D vectors as are left.
template <class Isa, class Lanes, int H, int D>
void add_value_tiles(const ValueArgs& a, ValueSums<H>& s) {
    constexpr int64_t n = D * Lanes::kCount;
    for (; s.d + n <= a.n_dims; s.d += n) {
        prefetch_rows<Isa>(a.ahead, s.d / 8 * s.rows_ahead, (s.d + n) / 8 * s.rows_ahead);
        add_value_columns<Isa, Lanes, H, D>(s.weights, s.values + s.d, s.row_floats, s.n_rows, s.y);
        for (float*& p : s.y) p += n;
    }
}

/// All dims of H queries over rows [begin, end), which all of them see.
template <class Isa, int H>
void add_value_rows(const ValueArgs& a, const AttentionQuery* queries, int64_t begin, int64_t end) {
    constexpr int D = H == 4 && Isa::kRows == 8 ? 2 : 4;  // sums, values and a weight fit the registers
    const int64_t row_floats = (a.n_dims + 7) / 8 * 8;
    const int64_t rows_ahead =
        queries == a.queries ? (8 * a.ahead.n_rows + a.n_dims - 1) / a.n_dims : 0;  // once for all
    ValueSums<H> s{{}, {}, a.values + begin * row_floats, row_floats, end - begin, 0, rows_ahead};
    for (int h = 0; h < H; ++h) {
        s.weights[h] = queries[h].scores + (begin - queries[h].begin);
        s.y[h] = queries[h].y;
    }
    add_value_tiles<Isa, AllLanes<Isa>, H, D>(a, s);
    add_value_tiles<Isa, AllLanes<Isa>, H, 2>(a, s);
    add_value_tiles<Isa, EightLanes<Isa>, H, 1>(a, s);
    if (s.d == a.n_dims) return;
    float last[H][8] = {};
    float* last_of[H];
    for (int h = 0; h < H; ++h) {
        last_of[h] = last[h];
        for (int64_t i = 0; s.d + i < a.n_dims; ++i) last[h][i] = s.y[h][i];
    }
    add_value_columns<Isa, EightLanes<Isa>, H, 1>(s.weights, s.values + s.d, row_floats, s.n_rows, last_of);
    for (int h = 0; h < H; ++h)
        for (int64_t i = 0; s.d + i < a.n_dims; ++i) s.y[h][i] = last[h][i];
}

/// H queries. Rows that only some see, at either end, are theirs alone.
template <class Isa, int H>
void add_values_of(const ValueArgs& a, const AttentionQuery* queries) {
    int64_t begin = queries[0].begin, end = queries[0].end;
    for (int h = 1; h < H; ++h) {
        begin = queries[h].begin > begin ? queries[h].begin : begin;
        end = queries[h].end < end ? queries[h].end : end;
    }
    if (begin >= end) {
        for (int h = 0; h < H; ++h)
            if (queries[h].begin < queries[h].end)
                add_value_rows<Isa, 1>(a, queries + h, queries[h].begin, queries[h].end);
        return;
    }
    for (int h = 0; h < H; ++h)
        if (queries[h].begin < begin) add_value_rows<Isa, 1>(a, queries + h, queries[h].begin, begin);
    add_value_rows<Isa, H>(a, queries, begin, end);
    for (int h = 0; h < H; ++h)
        if (end < queries[h].end) add_value_rows<Isa, 1>(a, queries + h, end, queries[h].end);
}

/// y[d] = fma(weight[j], v_j[d], y[d]) over the rows j that each query sees, in order.
template <class Isa>
void attention_values(const ValueArgs& a) noexcept {
    int i = 0;
    for (; a.n_queries - i >= 4; i += 4) add_values_of<Isa, 4>(a, a.queries + i);
    for (; a.n_queries - i >= 2; i += 2) add_values_of<Isa, 2>(a, a.queries + i);
    if (i < a.n_queries) add_values_of<Isa, 1>(a, a.queries + i);
}

}  // namespace ggmlx
