#include "convert/gguf/decode.h"

#include <cstring>

#include "convert/gguf/pack.h"
#include "convert/gguf/scales.h"
#include "ggmlx/core/error.h"
#include "ggmlx/core/float_types.h"
#include "ggmlx/quant/blocks.h"

namespace convert {
namespace {

using ggmlx::f16_to_f32;

/// The non-linear levels of IQ4_NL and IQ4_XS.
constexpr int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

int byte_at(const std::byte* p, int i) { return std::to_integer<int>(p[i]); }
float f16_at(const std::byte* p) { return f16_to_f32(load_u16(p)); }
/// Value i (0-31) of 16 bytes whose low nibbles come first.
int nibble_at(const std::byte* codes, int i) { return i < 16 ? byte_at(codes, i) & 15 : byte_at(codes, i - 16) >> 4; }

/// Through a tile of our own, whose decode is the definition.
template <class Tile>
void decode_packed(const std::byte* block, float* dst) {
    Tile tile{};
    (void)pack_block(block, tile, 0);  // a scale that is not finite gives values that are not: the caller looks at them
    const auto n = static_cast<int>(ggmlx::info(Tile::kType).block_len);
    for (int k = 0; k < n; ++k) dst[k] = ggmlx::value(tile, 0, k);
}

void decode_f32(const std::byte* p, float* dst) { std::memcpy(dst, p, sizeof *dst); }
void decode_f16(const std::byte* p, float* dst) { *dst = f16_at(p); }
void decode_bf16(const std::byte* p, float* dst) { *dst = ggmlx::bf16_to_f32(load_u16(p)); }

/// d, 32 fifth bits, 32 nibbles.
void decode_q5_0(const std::byte* p, float* dst) {
    const float d = f16_at(p);
    for (int i = 0; i < 32; ++i) {
        const int fifth = byte_at(p, 2 + i / 8) >> (i % 8) & 1;
        dst[i] = d * static_cast<float>((nibble_at(p + 6, i) | fifth << 4) - 16);
    }
}

/// d, m, 32 fifth bits, 32 nibbles.
void decode_q5_1(const std::byte* p, float* dst) {
    const float d = f16_at(p), m = f16_at(p + 2);
    for (int i = 0; i < 32; ++i) {
        const int fifth = byte_at(p, 4 + i / 8) >> (i % 8) & 1;
        dst[i] = d * static_cast<float>(nibble_at(p + 8, i) | fifth << 4) + m;
    }
}

/// Value k of 64 bytes with four 2-bit values each: 32 bytes for each half, the first 32 values in bits 0-1.
int two_bits(const std::byte* codes, int k) { return byte_at(codes, k / 128 * 32 + k % 32) >> (k / 32 % 4 * 2) & 3; }

/// 16 bytes with a 4-bit scale and minimum each, 256 2-bit values, d, dmin.
void decode_q2_k(const std::byte* p, float* dst) {
    const float d = f16_at(p + 80), dmin = f16_at(p + 82);
    for (int k = 0; k < 256; ++k) {
        const int packed = byte_at(p, k / 16);
        const float scale = d * static_cast<float>(packed & 15), min = dmin * static_cast<float>(packed >> 4);
        dst[k] = scale * static_cast<float>(two_bits(p + 16, k)) - min;
    }
}

/// 6-bit scale b (0-15) of Q3_K, less 32: 8 bytes hold the low four bits, 4 bytes the high two.
int q3_scale(const std::byte* packed, int b) {
    const int low = byte_at(packed, b % 8) >> (b < 8 ? 0 : 4) & 15;
    const int high = byte_at(packed, 8 + b % 4) >> (b / 4 * 2) & 3;
    return (low | high << 4) - 32;
}

/// 32 bytes of third bits (bit j of byte i: value 32 j + i; a 0 means minus 4), 256 2-bit values, scales, d.
void decode_q3_k(const std::byte* p, float* dst) {
    const float d = f16_at(p + 108);
    for (int k = 0; k < 256; ++k) {
        const float scale = d * static_cast<float>(q3_scale(p + 96, k / 16));
        const int third = byte_at(p, k % 32) >> (k / 32) & 1;
        dst[k] = scale * static_cast<float>(two_bits(p + 32, k) - (third ? 0 : 4));
    }
}

/// d, dmin, 12 bytes of scales as in Q4_K, 32 bytes of fifth bits (bit b of byte i: sub-block b), nibbles as in Q4_K.
void decode_q5_k(const std::byte* p, float* dst) {
    const float d = f16_at(p), dmin = f16_at(p + 2);
    for (int b = 0; b < 8; ++b) {
        const ScaleAndMin packed = scale_and_min(p + 4, b);
        const float scale = d * static_cast<float>(packed.scale), min = dmin * static_cast<float>(packed.min);
        for (int i = 0; i < 32; ++i) {
            const int low = byte_at(p, 48 + b / 2 * 32 + i) >> (b % 2 * 4) & 15;
            const int fifth = byte_at(p, 16 + i) >> b & 1;
            dst[b * 32 + i] = scale * static_cast<float>(low | fifth << 4) - min;
        }
    }
}

/// d as f32, 256 int8 (and sums of 16 that nobody needs).
void decode_q8_k(const std::byte* p, float* dst) {
    float d;
    std::memcpy(&d, p, sizeof d);
    for (int k = 0; k < 256; ++k) dst[k] = d * static_cast<float>(std::to_integer<int8_t>(p[4 + k]));
}

void decode_iq4_nl(const std::byte* p, float* dst) {
    const float d = f16_at(p);
    for (int i = 0; i < 32; ++i) dst[i] = d * static_cast<float>(kIq4Levels[nibble_at(p + 2, i)]);
}

/// d, 16 bits with the high two bits of eight scales, 4 bytes with their low nibbles, 16 bytes for each 32 values.
void decode_iq4_xs(const std::byte* p, float* dst) {
    const float d = f16_at(p);
    const int high = load_u16(p + 2);
    for (int b = 0; b < 8; ++b) {
        const int low = byte_at(p, 4 + b / 2) >> (b % 2 * 4) & 15;
        const float scale = d * static_cast<float>((low | (high >> (2 * b) & 3) << 4) - 32);
        for (int i = 0; i < 32; ++i)
            dst[b * 32 + i] = scale * static_cast<float>(kIq4Levels[nibble_at(p + 8 + b * 16, i)]);
    }
}

using DecodeBlock = void (*)(const std::byte* block, float* dst);

DecodeBlock decoder_of(const GgufTypeInfo& type) {
    switch (type.type) {
        case GgufType::F32:
            return decode_f32;
        case GgufType::F16:
            return decode_f16;
        case GgufType::BF16:
            return decode_bf16;
        case GgufType::Q8_0:
            return decode_packed<ggmlx::TileQ8_0>;
        case GgufType::Q4_0:
            return decode_packed<ggmlx::TileQ4_0>;
        case GgufType::Q4_1:
            return decode_packed<ggmlx::TileQ4_1>;
        case GgufType::Q4_K:
            return decode_packed<ggmlx::TileQ4_K>;
        case GgufType::Q6_K:
            return decode_packed<ggmlx::TileQ6_K>;
        case GgufType::MXFP4:
            return decode_packed<ggmlx::TileMXFP4>;
        case GgufType::Q5_0:
            return decode_q5_0;
        case GgufType::Q5_1:
            return decode_q5_1;
        case GgufType::Q2_K:
            return decode_q2_k;
        case GgufType::Q3_K:
            return decode_q3_k;
        case GgufType::Q5_K:
            return decode_q5_k;
        case GgufType::Q8_K:
            return decode_q8_k;
        case GgufType::IQ4_NL:
            return decode_iq4_nl;
        case GgufType::IQ4_XS:
            return decode_iq4_xs;
        default:
            ggmlx::fail(ggmlx::ErrorKind::Unsupported, "GGUF's type {} cannot be read", type.name);
    }
}

}  // namespace

void decode_gguf_row(const GgufTypeInfo& type, const std::byte* row, int64_t n, float* dst) {
    const DecodeBlock decode = decoder_of(type);
    for (int64_t k = 0; k < n; k += type.block_len, row += type.block_bytes) decode(row, dst + k);
}

}  // namespace convert
