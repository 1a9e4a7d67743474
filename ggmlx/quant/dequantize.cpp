// Stored tensor data -> float32, and what the way there and back costs.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "ggmlx/core/error.h"
#include "ggmlx/quant/blocks.h"
#include "ggmlx/quant/quantize.h"

namespace ggmlx {
namespace {

struct RowRange {
    int64_t begin, end;
};

template <class Tile>
void decode_tiles(const std::byte* src, int64_t n_in, RowRange rows, float* dst) {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(Tile));
    const int64_t block_len = info(Tile::kType).block_len, n_blocks = tile_grid(Tile::kType, 1, n_in).n_k_blocks;
    for (int64_t t = rows.begin / kTileRows; t * kTileRows < rows.end; ++t) {
        const int64_t begin = std::max(rows.begin, t * kTileRows), end = std::min(rows.end, (t + 1) * kTileRows);
        for (int64_t b = 0; b < n_blocks; ++b) {
            Tile tile;
            std::memcpy(&tile, src + (t * n_blocks + b) * kBytes, sizeof tile);
            const auto n = static_cast<int>(std::min(block_len, n_in - b * block_len));
            for (int64_t row = begin; row < end; ++row) {
                float* out = dst + (row - rows.begin) * n_in + b * block_len;
                for (int k = 0; k < n; ++k) out[k] = value(tile, static_cast<int>(row % kTileRows), k);
            }
        }
    }
}

template <class T, class Convert>
void convert_values(const std::byte* src, int64_t n, float* dst, Convert convert) {
    for (int64_t i = 0; i < n; ++i) {
        T value;
        std::memcpy(&value, src + i * static_cast<int64_t>(sizeof value), sizeof value);
        dst[i] = convert(value);
    }
}

void decode_plain(DType dtype, const std::byte* src, int64_t n, float* dst) {
    switch (dtype) {
        case DType::F32:
            std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
            return;
        case DType::F16:
            return convert_values<uint16_t>(src, n, dst, f16_to_f32);
        case DType::BF16:
            return convert_values<uint16_t>(src, n, dst, bf16_to_f32);
        case DType::F8_E4M3:
            return convert_values<uint8_t>(src, n, dst, f8_e4m3_to_f32);
        default:
            fail(ErrorKind::InvalidArgument, "{} values are no weights: they cannot be dequantized", name(dtype));
    }
}

}  // namespace

void dequantize_rows(DType dtype, std::span<const std::byte> src, int64_t n_out, int64_t n_in, int64_t first_row,
                     int64_t n_rows, float* dst) {
    const int64_t wanted = slice_bytes(dtype, {n_out, n_in});
    require(src.size() == static_cast<uint64_t>(wanted), ErrorKind::InvalidArgument,
            "a {} matrix of shape [{}, {}] has {} bytes, not {}", name(dtype), n_out, n_in, wanted, src.size());
    require(first_row >= 0 && n_rows >= 0 && first_row <= n_out && n_rows <= n_out - first_row,
            ErrorKind::InvalidArgument, "there are no rows {} to {} in a matrix of {} rows", first_row,
            first_row + n_rows, n_out);
    const RowRange rows{first_row, first_row + n_rows};
    if (is_block(dtype)) {
        with_tile(dtype, [&]<class Tile>(const Tile*) { decode_tiles<Tile>(src.data(), n_in, rows, dst); });
        return;
    }
    decode_plain(dtype, src.data() + first_row * n_in * info(dtype).block_bytes, n_rows * n_in, dst);
}

RoundTripError round_trip_error(DType dtype, const float* original, std::span<const std::byte> stored, int64_t n_out,
                                int64_t n_in) {
    RoundTripError result;
    double sum = 0.0;
    std::vector<float> row(static_cast<size_t>(n_in));
    for (int64_t i = 0; i < n_out; ++i) {
        dequantize_rows(dtype, stored, n_out, n_in, i, 1, row.data());
        for (int64_t k = 0; k < n_in; ++k) {
            const double error = static_cast<double>(row[static_cast<size_t>(k)]) - original[i * n_in + k];
            sum += error * error;
            result.max_error = std::max(result.max_error, std::fabs(error));
        }
    }
    const auto n_values = static_cast<double>(n_out) * static_cast<double>(n_in);
    result.rmse = n_values > 0 ? std::sqrt(sum / n_values) : 0.0;
    result.bits_per_weight = n_values > 0 ? 8.0 * static_cast<double>(stored.size()) / n_values : 0.0;
    return result;
}

}  // namespace ggmlx
