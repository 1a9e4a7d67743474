#include "ggmlx/reference/matrix.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "ggmlx/core/math.h"
#include "ggmlx/quant/activation.h"
#include "ggmlx/quant/blocks.h"
#include "ggmlx/reference/convert.h"
#include "ggmlx/reference/sums.h"

namespace ggmlx::reference {
namespace {

constexpr int64_t kBlock = kActivationBlock;

int64_t n_blocks(const StoredMatrix& m) { return ceil_div(m.n_in, kBlock); }

/// The tiles of a row, one per K block; the row is row % 16 in each.
template <class Tile>
const Tile* tiles_of_row(const StoredMatrix& m, int64_t row) {
    return reinterpret_cast<const Tile*>(m.data) + (row / kTileRows) * tile_grid(m.dtype, m.n_out, m.n_in).n_k_blocks;
}

template <class Tile>
constexpr bool kHasMinimum = std::is_same_v<Tile, TileQ4_1> || std::is_same_v<Tile, TileQ4_K>;

/// The integer factors of the two halves of sub-block b: q6_k's scales.
std::array<int32_t, 2> half_scales(const TileQ6_K& t, int b, int r) { return {t.sc[2 * b][r], t.sc[2 * b + 1][r]}; }
template <class Tile>
std::array<int32_t, 2> half_scales(const Tile&, int, int) {
    return {1, 1};
}

/// Activations as int8 with a scale per block, and the sums of their integers.
struct QuantizedRow {
    std::vector<std::array<int8_t, kBlock>> q;
    std::vector<float> scale;
    std::vector<int32_t> sum;
};

/// One weight row of an integer type, decoded block by block.
struct IntegerRow {
    std::vector<std::array<int8_t, kBlock>> q;
    std::vector<std::array<int32_t, 2>> half;
    std::vector<float> scale, min;
};

QuantizedRow quantize(const float* x, int64_t n, int64_t row, CallStatus* status) {
    const auto blocks = static_cast<size_t>(ceil_div(n, kBlock));
    QuantizedRow out{decltype(out.q)(blocks), decltype(out.scale)(blocks), decltype(out.sum)(blocks)};
    for (size_t b = 0; b < blocks; ++b) {
        const int64_t begin = static_cast<int64_t>(b) * kBlock;
        const auto count = static_cast<int>(std::min(kBlock, n - begin));
        out.scale[b] = quantize_activation_block(x + begin, count, out.q[b].data());
        for (int8_t q : out.q[b]) out.sum[b] += q;
        if (std::isnan(out.scale[b])) status->report(Fault::NonFinite, row);
    }
    return out;
}

template <class Tile>
void decode(const StoredMatrix& m, int64_t row, IntegerRow& out) {
    const auto blocks = static_cast<size_t>(n_blocks(m));
    const auto sub_blocks = static_cast<size_t>(info(Tile::kType).block_len / kBlock);
    const Tile* tiles = tiles_of_row<Tile>(m, row);
    const int r = static_cast<int>(row % kTileRows);
    out.q.resize(blocks), out.half.resize(blocks), out.scale.resize(blocks), out.min.resize(blocks);
    for (size_t b = 0; b < blocks; ++b) {
        const Tile& tile = tiles[b / sub_blocks];
        const int sub = static_cast<int>(b % sub_blocks);
        for (int k = 0; k < kBlock; ++k)
            out.q[b][static_cast<size_t>(k)] = static_cast<int8_t>(quant(tile, r, sub * static_cast<int>(kBlock) + k));
        out.half[b] = half_scales(tile, sub, r);
        out.scale[b] = sub_scale(tile, sub, r);
        out.min[b] = sub_min(tile, sub, r);
    }
}

int32_t integer_dot(const int8_t* a, const int8_t* b, int64_t n) {
    int32_t sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += a[k] * b[k];
    return sum;
}

float integer_row_dot(const IntegerRow& w, const QuantizedRow& x, bool has_minimum) {
    EightSums sums;
    for (size_t b = 0; b < w.q.size(); ++b) {
        const int8_t *wq = w.q[b].data(), *xq = x.q[b].data();
        const int32_t i = w.half[b][0] * integer_dot(wq, xq, kBlock / 2) +
                          w.half[b][1] * integer_dot(wq + kBlock / 2, xq + kBlock / 2, kBlock / 2);
        float& p = sums[static_cast<int64_t>(b)];
        p = std::fma(static_cast<float>(i), w.scale[b] * x.scale[b], p);
        if (has_minimum) p = std::fma(-static_cast<float>(x.sum[b]), w.min[b] * x.scale[b], p);
    }
    return sums.total();
}

template <class Tile>
void multiply_integers(const StoredMatrix& m, const float* x, int64_t n_rows, float* y, RowFaults faults) {
    std::vector<QuantizedRow> rows;
    for (int64_t i = 0; i < n_rows; ++i)
        rows.push_back(quantize(x + i * m.n_in, m.n_in, faults.first_row + i, faults.status));
    IntegerRow weight;
    for (int64_t r = 0; r < m.n_out; ++r) {
        decode<Tile>(m, r, weight);
        for (int64_t i = 0; i < n_rows; ++i)
            y[i * m.n_out + r] = integer_row_dot(weight, rows[static_cast<size_t>(i)], kHasMinimum<Tile>);
    }
}

/// mxfp8: float products, partial sums by block; the row's padding (zeros) takes part.
void multiply_blocks_of_floats(const StoredMatrix& m, const float* x, int64_t n_rows, float* y) {
    const int64_t padded = n_blocks(m) * kBlock;
    std::vector<float> weight(static_cast<size_t>(padded)), activation(static_cast<size_t>(padded));
    const StoredMatrix with_padding{m.data, m.dtype, m.n_out, padded};
    for (int64_t r = 0; r < m.n_out; ++r) {
        decode_row(with_padding, r, weight.data());
        for (int64_t i = 0; i < n_rows; ++i) {
            std::copy_n(x + i * m.n_in, m.n_in, activation.begin());
            EightSums sums;
            for (size_t k = 0; k < weight.size(); ++k) {
                float& p = sums[static_cast<int64_t>(k) / kBlock];
                p = std::fma(weight[k], activation[k], p);
            }
            y[i * m.n_out + r] = sums.total();
        }
    }
}

void multiply_plain(const StoredMatrix& m, const float* x, int64_t n_rows, float* y) {
    std::vector<float> weight(static_cast<size_t>(m.n_in));
    for (int64_t r = 0; r < m.n_out; ++r) {
        decode_row(m, r, weight.data());
        for (int64_t i = 0; i < n_rows; ++i) y[i * m.n_out + r] = dot(weight.data(), x + i * m.n_in, m.n_in);
    }
}

}  // namespace

void decode_row(const StoredMatrix& m, int64_t row, float* dst) {
    if (!is_block(m.dtype)) {
        const int64_t row_bytes = m.n_in * info(m.dtype).block_bytes;
        return load_floats(m.dtype, m.data + row * row_bytes, m.n_in, dst);
    }
    with_tile(m.dtype, [&]<class Tile>(const Tile*) {
        const Tile* tiles = tiles_of_row<Tile>(m, row);
        const int64_t block_len = info(m.dtype).block_len;
        const int r = static_cast<int>(row % kTileRows);
        for (int64_t k = 0; k < m.n_in; ++k) dst[k] = value(tiles[k / block_len], r, static_cast<int>(k % block_len));
    });
}

void multiply(const StoredMatrix& m, const float* x, int64_t n_rows, float* y, RowFaults faults) {
    if (!is_block(m.dtype)) return multiply_plain(m, x, n_rows, y);
    if (m.dtype == DType::MXFP8) return multiply_blocks_of_floats(m, x, n_rows, y);
    with_tile(m.dtype, [&]<class Tile>(const Tile*) {
        if constexpr (!std::is_same_v<Tile, TileMXFP8>) multiply_integers<Tile>(m, x, n_rows, y, faults);
    });
}

}  // namespace ggmlx::reference
