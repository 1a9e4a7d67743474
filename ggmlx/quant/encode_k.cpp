// Quantizers of the types with 256 values per block and quantized scales of its sub-blocks: q4_k and q6_k.
// Each sub-block is fitted alone; then the block's float16 scales and the sub-blocks' integer scales are improved in
// turn, each by least squares or by trying the neighbours, and the best state is stored.

#include "ggmlx/quant/encode.h"
#include "ggmlx/quant/fit.h"

namespace ggmlx {
namespace {

constexpr int kRounds = 2;

// --- q4_k: eight sub-blocks, value = d * sc * q - dmin * mn
// -----------------------------------------------------------

constexpr int kSubs4 = 8, kLen4 = 32;
constexpr fit::Codes kCodes4{0.0f, 15.0f};

struct Block4 {
    uint16_t d = 0, dmin = 0;
    int sc[kSubs4] = {}, mn[kSubs4] = {};
    float error = 0;

    fit::Line line(int scale, int minimum) const {
        return {f16_to_f32(d) * static_cast<float>(scale), -(f16_to_f32(dmin) * static_cast<float>(minimum))};
    }
};

fit::Line search_line(const float* x) {
    const float low = std::min(0.0f, *std::min_element(x, x + kLen4)), high = *std::max_element(x, x + kLen4);
    return fit::LineSearch<kLen4>(x, kCodes4, 0.0f).best(low, high, 0.025f);
}

/// The nearest scale and minimum of each sub-block, or neighbours of them if those serve it better: first of the
/// scale, then of the minimum.
void choose_subscales(const float* x, const fit::Line* wanted, Block4& block) {
    const float to_sc = fit::inverse(f16_to_f32(block.d)), to_mn = fit::inverse(f16_to_f32(block.dmin));
    block.error = 0.0f;
    for (int b = 0; b < kSubs4; ++b) {
        const int sc = static_cast<int>(fit::code(wanted[b].scale * to_sc, 0.0f, 63.0f));
        const int mn = static_cast<int>(fit::code(-wanted[b].offset * to_mn, 0.0f, 63.0f));
        float best = INFINITY;
        auto consider = [&](int s, int m) {
            if (s < 0 || s > 63 || m < 0 || m > 63) return;
            const fit::Line line = block.line(s, m);
            const float error = fit::squared_error<kLen4>(x + b * kLen4, line.scale, line.offset, kCodes4);
            if (error < best) best = error, block.sc[b] = s, block.mn[b] = m;
        };
        for (int s : {sc, sc - 1, sc + 1}) consider(s, mn);
        for (int m : {mn - 1, mn + 1}) consider(block.sc[b], m);
        block.error += best;
    }
}

/// Least squares for d and dmin with all codes fixed: x ~ d * u - dmin * v with u = sc * q and v = mn.
void fit_block_scales(const float* x, Block4& block) {
    double uu = 0, uv = 0, vv = 0, xu = 0, xv = 0;
    for (int b = 0; b < kSubs4; ++b) {
        const fit::Line line = block.line(block.sc[b], block.mn[b]);
        int8_t q[kLen4];
        fit::store_codes<kLen4>(x + b * kLen4, line.scale, line.offset, kCodes4, q);
        for (int k = 0; k < kLen4; ++k) {
            const double u = block.sc[b] * q[k], v = -block.mn[b], value = x[b * kLen4 + k];
            uu += u * u, uv += u * v, vv += v * v, xu += value * u, xv += value * v;
        }
    }
    const double determinant = uu * vv - uv * uv;
    if (determinant > 0.0) {
        block.d = fit::finite_f16(static_cast<float>((xu * vv - xv * uv) / determinant));
        block.dmin = fit::finite_f16(static_cast<float>((xv * uu - xu * uv) / determinant));
    } else if (uu > 0.0) {
        block.d = fit::finite_f16(static_cast<float>(xu / uu));
    }
}

Block4 fit_q4_k(const float* x) {
    fit::Line wanted[kSubs4];
    float largest_scale = 0.0f, largest_min = 0.0f;
    for (int b = 0; b < kSubs4; ++b) {
        wanted[b] = search_line(x + b * kLen4);
        largest_scale = std::max(largest_scale, wanted[b].scale);
        largest_min = std::max(largest_min, -wanted[b].offset);
    }
    Block4 block;
    block.d = fit::finite_f16(largest_scale / 63.0f);
    block.dmin = fit::finite_f16(largest_min / 63.0f);
    choose_subscales(x, wanted, block);
    Block4 best = block;
    for (int round = 0; round < kRounds; ++round) {
        fit_block_scales(x, block);
        choose_subscales(x, wanted, block);
        if (block.error < best.error) best = block;
    }
    return best;
}

// --- q6_k: sixteen sub-blocks, value = d * sc * (q - 32)
// --------------------------------------------------------------

constexpr int kSubs6 = 16, kLen6 = 16;
constexpr fit::Codes kCodes6{-32.0f, 31.0f};

struct Block6 {
    uint16_t d = 0;
    int sc[kSubs6] = {};
    float error = 0;

    float scale(int b) const { return f16_to_f32(d) * static_cast<float>(sc[b]); }
};

void choose_subscales(const float* x, const float* wanted, Block6& block) {
    const float d = f16_to_f32(block.d);
    block.error = 0.0f;
    for (int b = 0; b < kSubs6; ++b) {
        const int sc = static_cast<int>(fit::code(wanted[b] * fit::inverse(d), -128.0f, 127.0f));
        float best = INFINITY;
        for (int s = std::max(sc - 1, -128); s <= std::min(sc + 1, 127); ++s) {
            const float error = fit::squared_error<kLen6>(x + b * kLen6, d * static_cast<float>(s), 0.0f, kCodes6);
            if (error < best) best = error, block.sc[b] = s;
        }
        block.error += best;
    }
}

void fit_block_scale(const float* x, Block6& block) {
    double uu = 0, xu = 0;
    for (int b = 0; b < kSubs6; ++b) {
        int8_t q[kLen6];
        fit::store_codes<kLen6>(x + b * kLen6, block.scale(b), 0.0f, kCodes6, q);
        for (int k = 0; k < kLen6; ++k) {
            const double u = block.sc[b] * q[k];
            uu += u * u, xu += x[b * kLen6 + k] * u;
        }
    }
    if (uu > 0.0) block.d = fit::finite_f16(static_cast<float>(xu / uu));
}

Block6 fit_q6_k(const float* x) {
    float wanted[kSubs6];
    for (int b = 0; b < kSubs6; ++b) wanted[b] = fit::best_scale<kLen6>(x + b * kLen6, kCodes6, 0.90f, 0.02f, 9);
    Block6 block;
    block.d = fit::finite_f16(fit::extreme<kSubs6>(wanted) / -128.0f);
    choose_subscales(x, wanted, block);
    Block6 best = block;
    for (int round = 0; round < kRounds; ++round) {
        fit_block_scale(x, block);
        choose_subscales(x, wanted, block);
        if (block.error < best.error) best = block;
    }
    return best;
}

}  // namespace

void encode_row(const float* x, TileQ4_K& tile, int r) {
    const Block4 block = fit_q4_k(x);
    for (int b = 0; b < kSubs4; ++b) {
        const fit::Line line = block.line(block.sc[b], block.mn[b]);
        int8_t q[kLen4];
        fit::store_codes<kLen4>(x + b * kLen4, line.scale, line.offset, kCodes4, q);
        store_nibbles(q, tile.q[b], r);
        tile.lo[b][r] = static_cast<uint8_t>((block.sc[b] & 15) | ((block.mn[b] & 15) << 4));
    }
    for (int b = 0; b < kSubs4; b += 2)
        tile.hi[b / 2][r] = static_cast<uint8_t>((block.sc[b] >> 4) | ((block.mn[b] >> 4) << 2) |
                                                 ((block.sc[b + 1] >> 4) << 4) | ((block.mn[b + 1] >> 4) << 6));
    tile.d[r] = block.d;
    tile.dmin[r] = block.dmin;
}

void encode_row(const float* x, TileQ6_K& tile, int r) {
    const Block6 block = fit_q6_k(x);
    int8_t q[256];
    for (int b = 0; b < kSubs6; ++b) {
        fit::store_codes<kLen6>(x + b * kLen6, block.scale(b), 0.0f, kCodes6, q + b * kLen6);
        tile.sc[b][r] = static_cast<int8_t>(block.sc[b]);
    }
    for (int b = 0; b < 8; ++b) {
        int8_t low[32], high[32];
        for (int k = 0; k < 32; ++k) {
            const int code = q[b * 32 + k] + 32;
            low[k] = static_cast<int8_t>(code & 15);
            high[k] = static_cast<int8_t>(code >> 4);
        }
        store_nibbles(low, tile.lo[b], r);
        for (int k = 0; k < 16; k += 8)  // byte [h][r][j]: k = 8h+j, 8h+4+j, 16+8h+j, 20+8h+j
            for (int j = 0; j < 4; ++j)
                tile.hi[b][k / 8][r][j] = static_cast<uint8_t>(high[k + j] | (high[k + 4 + j] << 2) |
                                                               (high[16 + k + j] << 4) | (high[20 + k + j] << 6));
    }
    tile.d[r] = block.d;
}

}  // namespace ggmlx
