#include "ggmlx/quant/quantize.h"

#include <cfloat>
#include <cmath>
#include <cstring>

#include "ggmlx/core/error.h"
#include "ggmlx/core/parallel.h"
#include "ggmlx/quant/encode.h"

namespace ggmlx {
namespace {

/// The largest magnitude that a type holds: float16 scales and float16 itself end at 65504, float32 below 2^128.
float largest_value(DType dtype) {
    constexpr float kF16Max = 65504.0f;
    switch (dtype) {
        case DType::F16:
        case DType::Q4_1:
            return kF16Max;
        case DType::BF16:
            return 0x1.fep127f;
        case DType::Q8_0:
            return 127 * kF16Max;
        case DType::Q4_0:
            return 7 * kF16Max;
        case DType::Q4_K:
            return 63 * kF16Max;
        case DType::Q6_K:
            return 31 * 127 * kF16Max;
        case DType::MXFP4:
            return 0x1.8p127f;  // 6 * 2^125: beyond it the nearest element times scale is not finite
        case DType::MXFP8:
            return 0x1.cp127f;  // 448 * 2^119
        default:
            return FLT_MAX;
    }
}

/// Throws for the first value of a row that the type cannot hold. Plain types keep NaN and infinity.
void check_values(DType dtype, const float* x, int64_t n, int64_t row, int64_t first_column) {
    const float largest = largest_value(dtype);
    for (int64_t i = 0; i < n; ++i) {
        if (std::fabs(x[i]) <= largest) continue;
        if (!std::isfinite(x[i]) && !is_block(dtype)) continue;
        fail(ErrorKind::InvalidArgument, "{} cannot hold the value {} at row {}, column {}: its largest is {}",
             name(dtype), x[i], row, first_column + i, largest);
    }
}

/// One row of 16: its K blocks left to right. The last block is filled up with zeros.
template <class Tile>
void encode_row_tile(const float* src, int64_t n_out, int64_t n_in, int64_t row_tile, std::byte* dst) {
    const int64_t block_len = info(Tile::kType).block_len;
    const int64_t n_blocks = tile_grid(Tile::kType, n_out, n_in).n_k_blocks;
    const int64_t first_row = row_tile * kTileRows, n_rows = std::min(kTileRows, n_out - first_row);
    for (int64_t b = 0; b < n_blocks; ++b) {
        const int64_t column = b * block_len, n = std::min(block_len, n_in - column);
        Tile tile{};
        for (int64_t r = 0; r < n_rows; ++r) {
            float x[256] = {};
            const float* row = src + (first_row + r) * n_in;
            check_values(Tile::kType, row + column, n, first_row + r, column);
            std::copy_n(row + column, n, x);
            encode_row(x, tile, static_cast<int>(r));
        }
        std::memcpy(dst + (row_tile * n_blocks + b) * static_cast<int64_t>(sizeof tile), &tile, sizeof tile);
    }
}

template <class T, class Convert>
void convert_row(const float* x, int64_t n, std::byte* dst, Convert convert) {
    for (int64_t i = 0; i < n; ++i) {
        const T value = convert(x[i]);
        std::memcpy(dst + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
    }
}

void encode_plain_row(DType dtype, const float* x, int64_t n, std::byte* dst) {
    switch (dtype) {
        case DType::F16:
            return convert_row<uint16_t>(x, n, dst, f32_to_f16);
        case DType::BF16:
            return convert_row<uint16_t>(x, n, dst, f32_to_bf16);
        case DType::F8_E4M3:
            return convert_row<uint8_t>(x, n, dst, f32_to_f8_e4m3);
        default:
            std::memcpy(dst, x, static_cast<size_t>(n) * sizeof(float));
    }
}

void check_matrix(DType dtype, int64_t n_out, int64_t n_in, size_t size_bytes) {
    require(dtype != DType::I32, ErrorKind::InvalidArgument, "i32 is no type for weights: it cannot be quantized to");
    require(n_out > 0 && n_in > 0, ErrorKind::InvalidArgument, "a matrix cannot have the shape [{}, {}]", n_out, n_in);
    require(storable_type(dtype, n_in) == dtype, ErrorKind::InvalidArgument,
            "{} needs rows of a multiple of {} values, not {}: use {} there", name(dtype), info(dtype).block_len, n_in,
            name(info(dtype).fallback));
    const int64_t wanted = slice_bytes(dtype, {n_out, n_in});
    require(static_cast<uint64_t>(wanted) == size_bytes, ErrorKind::InvalidArgument,
            "a {} matrix of shape [{}, {}] has {} bytes, not {}", name(dtype), n_out, n_in, wanted, size_bytes);
}

}  // namespace

DType storable_type(DType wanted, int64_t n_in) {
    const DTypeInfo& type = info(wanted);
    return n_in % type.block_len == 0 ? wanted : type.fallback;
}

void quantize_matrix(DType dtype, const float* src, int64_t n_out, int64_t n_in, std::span<std::byte> dst,
                     int n_threads) {
    check_matrix(dtype, n_out, n_in, dst.size());
    if (is_block(dtype)) {
        with_tile(dtype, [&]<class Tile>(const Tile*) {
            parallel_for(tile_grid(dtype, n_out, n_in).n_row_tiles, n_threads,
                         [&](int64_t t) { encode_row_tile<Tile>(src, n_out, n_in, t, dst.data()); });
        });
        return;
    }
    const int64_t row_bytes = n_in * info(dtype).block_bytes;
    parallel_for(n_out, n_threads, [&](int64_t row) {
        check_values(dtype, src + row * n_in, n_in, row, 0);
        encode_plain_row(dtype, src + row * n_in, n_in, dst.data() + row * row_bytes);
    });
}

}  // namespace ggmlx
