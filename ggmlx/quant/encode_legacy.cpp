// Quantizers of the types with one float16 scale (and minimum) per 32 values: q8_0, q4_0, q4_1.

#include "ggmlx/quant/encode.h"
#include "ggmlx/quant/fit.h"

namespace ggmlx {
namespace {

constexpr int kBlock = 32;

/// Fits found by a search must also survive the rounding of scale and offset to float16; the better of two candidates.
struct HalfLine {
    uint16_t scale = 0, offset = 0;
    float error = 0;
};

HalfLine as_stored(const float* x, fit::Line line, fit::Codes range) {
    HalfLine half{fit::finite_f16(line.scale), fit::finite_f16(line.offset), 0.0f};
    half.error = fit::squared_error<kBlock>(x, f16_to_f32(half.scale), f16_to_f32(half.offset), range);
    return half;
}

HalfLine better(const HalfLine& a, const HalfLine& b) { return b.error < a.error ? b : a; }

}  // namespace

void encode_row(const float* x, TileQ8_0& tile, int r) {
    const uint16_t d = fit::finite_f16(std::fabs(fit::extreme<kBlock>(x)) / 127.0f);
    int8_t q[kBlock];
    fit::store_codes<kBlock>(x, f16_to_f32(d), 0.0f, {-127.0f, 127.0f}, q);
    for (int k = 0; k < kBlock; ++k) tile.q[k >> 2][r][k & 3] = q[k];
    tile.d[r] = d;
}

void encode_row(const float* x, TileQ4_0& tile, int r) {
    constexpr fit::Codes range{-8.0f, 7.0f};
    const fit::Line whole_range{fit::extreme<kBlock>(x) / -8.0f, 0.0f};
    const fit::Line searched{fit::best_scale<kBlock>(x, range, 0.84f, 0.05f, 8), 0.0f};
    const HalfLine best = better(as_stored(x, whole_range, range), as_stored(x, searched, range));
    int8_t q[kBlock];
    fit::store_codes<kBlock>(x, f16_to_f32(best.scale), 0.0f, range, q);
    for (int8_t& code : q) code = static_cast<int8_t>(code + 8);
    store_nibbles(q, tile.q, r);
    tile.d[r] = best.scale;
}

void encode_row(const float* x, TileQ4_1& tile, int r) {
    constexpr fit::Codes range{0.0f, 15.0f};
    const float low = *std::min_element(x, x + kBlock), high = *std::max_element(x, x + kBlock);
    const HalfLine whole_range = as_stored(x, {(high - low) / 15.0f, low}, range);
    const HalfLine best =
        better(whole_range, as_stored(x, fit::LineSearch<kBlock>(x, range, INFINITY).best(low, high, 0.02f), range));
    int8_t q[kBlock];
    fit::store_codes<kBlock>(x, f16_to_f32(best.scale), f16_to_f32(best.offset), range, q);
    store_nibbles(q, tile.q, r);
    tile.d[r] = best.scale;
    tile.m[r] = best.offset;
}

}  // namespace ggmlx
