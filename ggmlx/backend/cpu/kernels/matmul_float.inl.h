#pragma once
// y = W x for weights without an integer dot product: MXFP8 tiles and plain rows of f32, f16 and bf16. Floats all the
// way: w becomes float32 exactly, then one fused multiply-add per value, in the order of ggmlx/reference.

#include "ggmlx/backend/cpu/kernels/lanes.inl.h"
#include "ggmlx/backend/cpu/kernels/matmul_tiles.inl.h"

namespace ggmlx {

/// Value j of the four of a K group: p = fma(w, x, p) for all rows and N columns.
template <class Isa, int N, int j>
void add_f8_value(const typename Isa::Bytes* codes, const typename Isa::Rows* scale, const float* const (&x)[N],
                  typename Isa::Rows (&sum)[N][16 / Isa::kRows]) {
    typename Isa::Rows w[16 / Isa::kRows];
    for (int part = 0; part < 16 / Isa::kRows; ++part)
        w[part] = Isa::mul(scale[part], Isa::template rows_f8<j>(codes[part]));
    for (int c = 0; c < N; ++c) {
        const auto value = Isa::splat_rows(x[c][j]);
        for (int part = 0; part < 16 / Isa::kRows; ++part) sum[c][part] = Isa::fma(w[part], value, sum[c][part]);
    }
}

/// Block b of the row tile, of partial sum p, N columns. The additions inside a block depend on each other; the two
/// parts' are independent. NaN codes are looked for on the side: they make their row's sum a NaN.
template <class Isa, int N>
void add_f8_block(const TileMXFP8& tile, int64_t b, int64_t p, const Column* columns, TileSums<Isa, N>& sums) {
    constexpr int kParts = 16 / Isa::kRows;
    typename Isa::Rows scale[kParts], sum[N][kParts];
    typename Isa::Bytes nans[kParts];
    for (int part = 0; part < kParts; ++part) {
        scale[part] = Isa::rows_e8m0(tile.e + part * Isa::kRows);
        nans[part] = Isa::zero_bytes();
        for (int c = 0; c < N; ++c) sum[c][part] = sums.at[c][p][part];
    }
    for (int g = 0; g < 8; ++g) {
        typename Isa::Bytes codes[kParts];
        for (int part = 0; part < kParts; ++part) {
            codes[part] = Isa::load_bytes(tile.q[g][part * Isa::kRows]);
            nans[part] = Isa::or_f8_nans(nans[part], codes[part]);
        }
        const float* x[N];
        for (int c = 0; c < N; ++c) x[c] = static_cast<const float*>(columns[c].x) + 32 * b + 4 * g;
        add_f8_value<Isa, N, 0>(codes, scale, x, sum);
        add_f8_value<Isa, N, 1>(codes, scale, x, sum);
        add_f8_value<Isa, N, 2>(codes, scale, x, sum);
        add_f8_value<Isa, N, 3>(codes, scale, x, sum);
    }
    for (int c = 0; c < N; ++c)
        for (int part = 0; part < kParts; ++part) sums.at[c][p][part] = Isa::nan_where_any(nans[part], sum[c][part]);
}

template <class Isa, int N>
void matmul_f8_row(const MatmulArgs& args, const Column* columns, int64_t tile_row) {
    const int64_t n_tiles = (args.n_in + 31) / 32;
    const TileMXFP8* tiles = static_cast<const TileMXFP8*>(args.weight) + tile_row * n_tiles;
    TileSums<Isa, N> sums;
    sums.clear(args.n_partials);
    for (int64_t b = 0; b < n_tiles; ++b) {
        prefetch_ahead<Isa>(tiles + b, sizeof(TileMXFP8));
        add_f8_block<Isa, N>(tiles[b], b, b & (args.n_partials - 1), columns, sums);
    }
    sums.store(args, columns, tile_row);
}

template <class Isa>
void matmul_mxfp8(const MatmulArgs& args, const Column* columns, int n_columns, int64_t begin, int64_t end) noexcept {
    for (int64_t tile_row = begin; tile_row < end; ++tile_row) {
        int c = 0;
        for (; n_columns - c >= 4; c += 4) matmul_f8_row<Isa, 4>(args, columns + c, tile_row);
        for (; n_columns - c >= 2; c += 2) matmul_f8_row<Isa, 2>(args, columns + c, tile_row);
        if (c < n_columns) matmul_f8_row<Isa, 1>(args, columns + c, tile_row);
    }
}

/// Eight stored values of a plain type as float32.
template <class Isa>
struct PlainF32 {
    using Stored = float;
    static auto load(const float* p) { return Isa::load8(p); }
};
template <class Isa>
struct PlainF16 {
    using Stored = uint16_t;
    static auto load(const uint16_t* p) { return Isa::load8(p); }
};
template <class Isa>
struct PlainBF16 {
    using Stored = uint16_t;
    static auto load(const uint16_t* p) { return Isa::load8_bf16(p); }
};
template <class Isa>
struct PlainF8 {
    using Stored = uint8_t;
    static auto load(const uint8_t* p) { return Isa::load8_f8(p); }
};

/// n < 8 values, then zeros.
template <class Plain>
auto load_plain_first(const typename Plain::Stored* p, int64_t n) {
    typename Plain::Stored lanes[8];
    for (int64_t i = 0; i < 8; ++i) lanes[i] = i < n ? p[i] : typename Plain::Stored{};
    return Plain::load(lanes);
}

/// The values from k on, fewer than eight, of dot_rows.
template <class Isa, class Plain, int R, int C>
void dot_rows_end(const typename Plain::Stored* w, const float* const (&x)[C], int64_t n, int64_t k,
                  typename Isa::F8 (&sums)[R][C]) {
    const auto left = static_cast<int>(n - k);
    for (int r = 0; r < R; ++r) {
        const auto values = load_plain_first<Plain>(w + r * n + k, left);
        for (int c = 0; c < C; ++c) {
            const auto sum = Isa::fma(values, load_first<Isa>(x[c] + k, left, 0.0f), sums[r][c]);
            sums[r][c] = Isa::first_lanes(left, sum, sums[r][c]);
        }
    }
}

/// result[r][c] = the eight partial sums of rows w + r · n and columns x[c], n values each.
template <class Isa, class Plain, int R, int C>
void dot_rows(const typename Plain::Stored* w, const float* const (&x)[C], int64_t n,
              typename Isa::F8 (&result)[R][C]) {
    using F8 = typename Isa::F8;
    F8 sums[R][C];  // of its own: through the reference every addition would go to memory
    for (auto& row : sums)
        for (F8& sum : row) sum = Isa::splat8(0.0f);
    int64_t k = 0;
    for (; k + 8 <= n; k += 8) {
        F8 columns[C];
        for (int c = 0; c < C; ++c) columns[c] = Isa::load8(x[c] + k);
        for (int r = 0; r < R; ++r) {
            const F8 values = Plain::load(w + r * n + k);
            for (int c = 0; c < C; ++c) sums[r][c] = Isa::fma(values, columns[c], sums[r][c]);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) result[r][c] = sums[r][c];
    if (k < n) dot_rows_end<Isa, Plain, R, C>(w, x, n, k, result);
}

template <class Isa, class Plain, int R, int C>
void matmul_plain_rows(const MatmulArgs& args, const Column* columns, int64_t row) {
    const auto* w = static_cast<const typename Plain::Stored*>(args.weight) + row * args.n_in;
    const float* x[C];
    for (int c = 0; c < C; ++c) x[c] = static_cast<const float*>(columns[c].x);
    typename Isa::F8 sums[R][C];
    dot_rows<Isa, Plain, R, C>(w, x, args.n_in, sums);
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) {
            const float y = Isa::reduce(sums[r][c]);
            columns[c].y[row + r] = args.bias ? y + args.bias[row + r] : y;
        }
}

/// Four rows and two columns at a time: eight independent chains of additions.
template <class Isa, class Plain>
void matmul_plain(const MatmulArgs& args, const Column* columns, int n_columns, int64_t begin, int64_t end) noexcept {
    const int64_t last = 16 * end < args.n_out ? 16 * end : args.n_out;
    for (int64_t row = 16 * begin; row < last;) {
        const bool four = last - row >= 4;
        int c = 0;
        for (; n_columns - c >= 2; c += 2) {
            if (four)
                matmul_plain_rows<Isa, Plain, 4, 2>(args, columns + c, row);
            else
                matmul_plain_rows<Isa, Plain, 1, 2>(args, columns + c, row);
        }
        if (c < n_columns) {
            if (four)
                matmul_plain_rows<Isa, Plain, 4, 1>(args, columns + c, row);
            else
                matmul_plain_rows<Isa, Plain, 1, 1>(args, columns + c, row);
        }
        row += four ? 4 : 1;
    }
}

}  // namespace ggmlx
