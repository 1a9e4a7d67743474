#include "ggmlx/reference/convert.h"

#include <algorithm>

#include "ggmlx/core/error.h"
#include "ggmlx/core/float_types.h"
#include "ggmlx/core/math.h"
#include "ggmlx/quant/encode.h"

namespace ggmlx::reference {
namespace {

constexpr int64_t kRowBlock = 32;

/// One block of a cache row: n <= 32 values, then zeros.
RowQ8_0 encode_cache_block(const float* x, int64_t n) {
    constexpr uint16_t kNaN = 0x7e00;
    if (!std::all_of(x, x + n, [](float v) { return std::isfinite(v); })) return {kNaN, {}};
    float values[kRowBlock] = {};
    std::copy(x, x + n, values);
    TileQ8_0 tile;
    encode_row(values, tile, 0);
    RowQ8_0 block{tile.d[0], {}};
    for (int k = 0; k < kRowBlock; ++k) block.q[k] = static_cast<int8_t>(quant(tile, 0, k));
    return block;
}

}  // namespace

void load_floats(DType dtype, const std::byte* src, int64_t n, float* dst) {
    const auto convert = [&](auto* values, auto f) { std::transform(values, values + n, dst, f); };
    switch (dtype) {
        case DType::F32:
            return convert(reinterpret_cast<const float*>(src), [](float v) { return v; });
        case DType::F16:
            return convert(reinterpret_cast<const uint16_t*>(src), f16_to_f32);
        case DType::BF16:
            return convert(reinterpret_cast<const uint16_t*>(src), bf16_to_f32);
        case DType::F8_E4M3:
            return convert(reinterpret_cast<const uint8_t*>(src), f8_e4m3_to_f32);
        default:
            fail(ErrorKind::InvalidArgument, "{} values cannot be read one by one", name(dtype));
    }
}

void store_floats(DType dtype, const float* src, int64_t n, std::byte* dst) {
    const auto convert = [&](auto* values, auto f) { std::transform(src, src + n, values, f); };
    switch (dtype) {
        case DType::F32:
            return convert(reinterpret_cast<float*>(dst), [](float v) { return v; });
        case DType::F16:
            return convert(reinterpret_cast<uint16_t*>(dst), f32_to_f16);
        case DType::BF16:
            return convert(reinterpret_cast<uint16_t*>(dst), f32_to_bf16);
        case DType::F8_E4M3:
            return convert(reinterpret_cast<uint8_t*>(dst), f32_to_f8_e4m3);
        default:
            fail(ErrorKind::InvalidArgument, "{} values cannot be written one by one", name(dtype));
    }
}

void load_cache_row(DType dtype, const std::byte* row, int64_t n, float* dst) {
    if (dtype != DType::Q8_0) return load_floats(dtype, row, n, dst);
    const auto* blocks = reinterpret_cast<const RowQ8_0*>(row);
    for (int64_t k = 0; k < n; ++k) {
        const RowQ8_0& block = blocks[k / kRowBlock];
        dst[k] = f16_to_f32(block.d) * static_cast<float>(block.q[k % kRowBlock]);
    }
}

void store_cache_row(DType dtype, const float* src, int64_t n, std::byte* row) {
    if (dtype != DType::Q8_0) return store_floats(dtype, src, n, row);
    auto* blocks = reinterpret_cast<RowQ8_0*>(row);
    for (int64_t k = 0; k < n; k += kRowBlock)
        blocks[k / kRowBlock] = encode_cache_block(src + k, std::min(kRowBlock, n - k));
}

}  // namespace ggmlx::reference
