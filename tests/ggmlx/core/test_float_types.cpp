// Every bit pattern of the small float formats, and the cases where conversions go wrong in practice.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ggmlx/core/float_types.h"

namespace ggmlx {
namespace {

float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

/// |x| as a fraction of a power of two, by definition of the format: sign, exponent and mantissa fields.
double by_definition(uint32_t bits, int exponent_bits, int mantissa_bits, int bias) {
    const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
    const auto exponent = static_cast<int>((bits >> mantissa_bits) & ((1u << exponent_bits) - 1));
    const double sign = (bits >> (exponent_bits + mantissa_bits)) & 1 ? -1.0 : 1.0;
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * std::ldexp((1u << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

TEST(Bf16, RoundsToNearestEvenAndKeepsNaN) {
    EXPECT_EQ(f32_to_bf16(from_bits(0x3F808000)), 0x3F80);
    EXPECT_EQ(f32_to_bf16(from_bits(0x3F818000)), 0x3F82);
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(from_bits(0x7F800001)))));
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(from_bits(0x7FFFFFFF)))));
    EXPECT_EQ(f32_to_bf16(from_bits(0x7F7FFFFF)), 0x7F80);
    EXPECT_EQ(f32_to_bf16(from_bits(0x80000000)), 0x8000);
}

TEST(Bf16, EveryPatternRoundTrips) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        const float value = bf16_to_f32(half);
        if (std::isnan(value))
            EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value)))) << bits;
        else
            EXPECT_EQ(f32_to_bf16(value), half) << bits;
    }
}

TEST(F16, EveryPatternHasItsValueAndRoundTrips) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        const float value = f16_to_f32(half);
        if ((bits & 0x7fff) > 0x7c00) {
            EXPECT_TRUE(std::isnan(value)) << bits;
            EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value)))) << bits;
            continue;
        }
        if ((bits & 0x7fff) == 0x7c00)
            EXPECT_TRUE(std::isinf(value)) << bits;
        else
            EXPECT_EQ(value, by_definition(bits, 5, 10, 15)) << bits;
        EXPECT_EQ(f32_to_f16(value), half) << bits;
    }
}

TEST(F16, TiesGoToEvenBetweenAllNeighbours) {
    for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
        const double low = f16_to_f32(static_cast<uint16_t>(bits)), high = f16_to_f32(static_cast<uint16_t>(bits + 1));
        const auto middle = static_cast<float>((low + high) / 2);  // exact: two more bits than float16
        EXPECT_EQ(f32_to_f16(middle), bits + (bits & 1)) << bits;
        EXPECT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), bits) << bits;
        EXPECT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), bits + 1) << bits;
    }
}

TEST(F16, OverflowBeginsHalfAStepBeyondTheLargest) {
    EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
    EXPECT_EQ(f32_to_f16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
    EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
    EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::max()), 0xfc00);
    EXPECT_EQ(f32_to_f16(0x1p-25f), 0);  // a tie between 0 and the smallest
    EXPECT_EQ(f32_to_f16(0x1.8p-25f), 1);
    EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
}

TEST(F8E4M3, EveryPatternHasItsValueAndRoundTrips) {
    for (uint32_t bits = 0; bits < 256; ++bits) {
        const auto byte = static_cast<uint8_t>(bits);
        const float value = f8_e4m3_to_f32(byte);
        if ((bits & 0x7f) == 0x7f) {
            EXPECT_TRUE(std::isnan(value)) << bits;
            EXPECT_TRUE(std::isnan(f8_e4m3_to_f32(f32_to_f8_e4m3(value)))) << bits;
            continue;
        }
        EXPECT_EQ(value, by_definition(bits, 4, 3, 7)) << bits;
        EXPECT_EQ(f32_to_f8_e4m3(value), byte) << bits;
    }
}

TEST(F8E4M3, TiesGoToEvenAndLargeValuesSaturate) {
    for (uint32_t bits = 0; bits < 0x7e; ++bits) {
        const float low = f8_e4m3_to_f32(static_cast<uint8_t>(bits)),
                    high = f8_e4m3_to_f32(static_cast<uint8_t>(bits + 1));
        EXPECT_EQ(f32_to_f8_e4m3((low + high) / 2), bits + (bits & 1)) << bits;
    }
    EXPECT_EQ(f32_to_f8_e4m3(1e9f), 0x7e);
    EXPECT_EQ(f32_to_f8_e4m3(-std::numeric_limits<float>::infinity()), 0xfe);
}

TEST(E8M0, IsAPowerOfTwoEvenAtItsEnds) {
    for (int e = 0; e < 255; ++e) EXPECT_EQ(e8m0_to_f32(static_cast<uint8_t>(e)), std::ldexp(1.0f, e - 127)) << e;
    EXPECT_TRUE(std::isnan(e8m0_to_f32(255)));
}

}  // namespace
}  // namespace ggmlx
