#include "ggmlx/reference/exp.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace ggmlx {
namespace {

float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

/// Distance from the exact value in units of the last place of the float nearest to it.
double error_in_ulps(float x) {
    const double exact = std::exp(static_cast<double>(x));
    const double ulp = std::ldexp(1.0, std::ilogb(static_cast<float>(exact)) - 23);
    return std::fabs(static_cast<double>(exp_poly(x)) - exact) / ulp;
}

TEST(ExpPoly, IsWithinNineTenthsOfAnUlp) {
    double worst = 0;
    for (uint32_t sign : {0u, 0x80000000u}) {
        for (uint32_t bits = 0; bits <= std::bit_cast<uint32_t>(kExpMax); bits += 1021) {
            const float x = from_bits(bits | sign);
            if (x >= kExpMin) worst = std::max(worst, error_in_ulps(x));
        }
    }
    EXPECT_LE(worst, 0.9);
    EXPECT_LE(error_in_ulps(kExpMax), 1.0);
    EXPECT_LE(error_in_ulps(kExpMin), 1.0);
}

TEST(ExpPoly, HasDocumentedEnds) {
    EXPECT_EQ(exp_poly(0.0f), 1.0f);
    EXPECT_EQ(exp_poly(-0.0f), 1.0f);
    EXPECT_TRUE(std::isfinite(exp_poly(kExpMax)));
    EXPECT_EQ(exp_poly(std::nextafter(kExpMax, 100.0f)), INFINITY);
    EXPECT_EQ(exp_poly(INFINITY), INFINITY);
    EXPECT_TRUE(std::isnormal(exp_poly(kExpMin)));
    EXPECT_EQ(exp_poly(std::nextafter(kExpMin, -100.0f)), 0.0f);
    EXPECT_EQ(exp_poly(-INFINITY), 0.0f);
    EXPECT_TRUE(std::isnan(exp_poly(NAN)));
}

TEST(ExpPoly, GivesTheseBits) {  // vector versions are compared with the function; this pins the function itself
    EXPECT_EQ(exp_poly(1.0f), 0x1.5bf0a8p+1f);
    EXPECT_EQ(exp_poly(-1.0f), 0x1.78b564p-2f);
    EXPECT_EQ(exp_poly(10.0f), 0x1.5829dep+14f);  // the nearest float is one less
}

TEST(Sigmoid, SaturatesAndIsCloseToTheExactOne) {
    EXPECT_EQ(sigmoid(-1000.0f), 0.0f);
    EXPECT_EQ(sigmoid(1000.0f), 1.0f);
    EXPECT_EQ(silu(-1000.0f), 0.0f);
    EXPECT_EQ(silu(1000.0f), 1000.0f);
    EXPECT_TRUE(std::isnan(silu(NAN)));
    for (float x = -30.0f; x < 30.0f; x += 0.37f) {
        const double exact = 1.0 / (1.0 + std::exp(-static_cast<double>(x)));
        // one ulp (two roundings' worth) of the exponential, an addition and a division
        EXPECT_NEAR(sigmoid(x), exact, 4 * 0x1p-24 * exact) << x;
        EXPECT_NEAR(silu(x), x * exact, 4 * 0x1p-24 * std::fabs(x * exact)) << x;
        EXPECT_NEAR(gated(x, 1.7f), x / (1.0 + std::exp(-1.7 * static_cast<double>(x))),
                    (4 + 2 * 1.7 * std::fabs(x)) * 0x1p-24 * std::fabs(x))
            << x;
    }
}

}  // namespace
}  // namespace ggmlx
