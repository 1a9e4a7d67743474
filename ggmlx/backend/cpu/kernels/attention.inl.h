#pragma once
// The three products of attention over one cache block, for the query heads that share a KV head. The driver
// (ops/attention.cpp) walks the blocks of a sequence.

#include "ggmlx/backend/cpu/kernels/matmul_float.inl.h"

namespace ggmlx {

/// R cache rows and C heads.
template <class Isa, class Plain, int R, int C>
void score_rows(const ScoreArgs& a, int64_t row, int head) {
    const float* q[C];
    for (int c = 0; c < C; ++c) q[c] = a.q + (head + c) * a.head_dim;
    typename Isa::F8 sums[R][C];
    dot_rows<Isa, Plain, R, C>(static_cast<const typename Plain::Stored*>(a.k_rows) + row * a.head_dim, q, a.head_dim,
                               sums);
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c)
            a.scores[(head + c) * a.scores_stride + row + r] = Isa::reduce(sums[r][c]) * a.scale;
}

template <class Isa, class Plain, int R, int C>
void score_heads(const ScoreArgs& a, int head) {
    int64_t row = 0;
    for (; row + R <= a.n_rows; row += R) score_rows<Isa, Plain, R, C>(a, row, head);
    for (; row < a.n_rows; ++row) score_rows<Isa, Plain, 1, C>(a, row, head);
}

/// scores[h][j] = (q_h · k_j) · scale
template <class Isa, class Plain>
void attention_scores(const ScoreArgs& a) noexcept {
    int head = 0;
    for (; a.n_heads - head >= 4; head += 4) score_heads<Isa, Plain, 2, 4>(a, head);
    for (; a.n_heads - head >= 2; head += 2) score_heads<Isa, Plain, 4, 2>(a, head);
    if (head < a.n_heads) score_heads<Isa, Plain, 8, 1>(a, head);
}

/// Dims [d, d + 8 · D) of H heads, all rows; the last vector may be short (n_last lanes).
template <class Isa, class Plain, int H, int D>
void value_columns(const ValueArgs& a, int head, int64_t d, int64_t n_last) {
    using F8 = typename Isa::F8;
    F8 sums[H][D];
    for (int h = 0; h < H; ++h)
        for (int i = 0; i < D; ++i) {
            const float* y = a.y + (head + h) * a.y_stride + d + 8 * i;
            sums[h][i] = n_last == 8 ? Isa::load8(y) : load_first<Isa>(y, n_last, 0.0f);
        }
    const auto* v = static_cast<const typename Plain::Stored*>(a.v_rows) + d;
    for (int64_t j = 0; j < a.n_rows; ++j, v += a.head_dim) {
        F8 values[D];
        for (int i = 0; i < D; ++i)
            values[i] = n_last == 8 ? Plain::load(v + 8 * i) : load_plain_first<Plain>(v, n_last);
        for (int h = 0; h < H; ++h) {
            const F8 e = Isa::splat8(a.weights[(head + h) * a.weights_stride + j]);
            for (int i = 0; i < D; ++i) sums[h][i] = Isa::fma(e, values[i], sums[h][i]);
        }
    }
    for (int h = 0; h < H; ++h)
        for (int i = 0; i < D; ++i) {
            float* y = a.y + (head + h) * a.y_stride + d + 8 * i;
            if (n_last == 8)
                Isa::store8(y, sums[h][i]);
            else
                store_first<Isa>(y, sums[h][i], n_last);
        }
}

template <class Isa, class Plain, int H, int D>
void value_heads(const ValueArgs& a, int head) {
    int64_t d = a.dim_begin;
    for (; d + 8 * D <= a.dim_end; d += 8 * D) value_columns<Isa, Plain, H, D>(a, head, d, 8);
    for (; d < a.dim_end; d += 8) value_columns<Isa, Plain, H, 1>(a, head, d, a.dim_end - d < 8 ? a.dim_end - d : 8);
}

/// y_h[d] = fma(weight[h][j], v_j[d], y_h[d]) over j in order, for dims [dim_begin, dim_end).
template <class Isa, class Plain>
void attention_values(const ValueArgs& a) noexcept {
    int head = 0;
    for (; a.n_heads - head >= 4; head += 4) value_heads<Isa, Plain, 4, 2>(a, head);
    for (; a.n_heads - head >= 2; head += 2) value_heads<Isa, Plain, 2, 4>(a, head);
    if (head < a.n_heads) value_heads<Isa, Plain, 1, 8>(a, head);
}

}  // namespace ggmlx
