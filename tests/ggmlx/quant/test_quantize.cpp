// Quantizers: error bounds that follow from the formats, exactness, refusal of bad values, independence of threads.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "ggmlx/core/error.h"
#include "ggmlx/quant/blocks.h"
#include "ggmlx/quant/quantize.h"

namespace ggmlx {
namespace {

std::vector<DType> weight_types() {
    std::vector<DType> types;
    for (uint32_t id = 0; id < kDTypeCount; ++id)
        if (*dtype_from_id(id) != DType::I32) types.push_back(*dtype_from_id(id));
    return types;
}

std::vector<float> normal_values(int64_t n, float scale, unsigned seed = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, scale);
    std::vector<float> values(static_cast<size_t>(n));
    for (float& v : values) v = normal(random);
    return values;
}

std::vector<std::byte> quantized(DType dtype, const std::vector<float>& values, int64_t n_out, int64_t n_in,
                                 int n_threads = 1) {
    std::vector<std::byte> stored(static_cast<size_t>(slice_bytes(dtype, {n_out, n_in})), std::byte{0xaa});
    quantize_matrix(dtype, values.data(), n_out, n_in, stored, n_threads);
    return stored;
}

std::vector<float> round_trip(DType dtype, const std::vector<float>& values, int64_t n_out, int64_t n_in) {
    std::vector<float> back(values.size());
    dequantize_rows(dtype, quantized(dtype, values, n_out, n_in), n_out, n_in, 0, n_out, back.data());
    return back;
}

std::string message_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

/// Root-mean-square error that a plain use of the format cannot exceed on values within ±amax: half a step of its
/// coarsest grid over that range, steps of float16 scales included.
double rmse_bound(DType dtype, double amax) {
    constexpr double kHalfUlp = 1.0 / 2048;  // relative rounding of a float16 scale
    switch (dtype) {
        case DType::F32:
            return 0.0;
        case DType::F16:
            return amax * 0x1p-11;
        case DType::BF16:
            return amax * 0x1p-8;
        case DType::F8_E4M3:
            return amax * 0x1p-4;
        case DType::Q8_0:
            return amax / 127 * 0.5 + amax * kHalfUlp;
        case DType::Q4_0:  // a scale of amax / 8; the far end is one step short
            return amax / 8;
        case DType::Q4_1:
            return 2 * amax / 15 * 0.5 + 2 * amax * kHalfUlp;
        case DType::Q4_K:  // scale and minimum in 63 steps of the largest: half a step of each besides
            return 2 * amax / 15 * 0.5 + (2 * amax + amax) * (0.5 / 63 + kHalfUlp);
        case DType::Q6_K:  // scales in 128 steps of the largest
            return amax / 32 + amax * (0.5 / 128 + kHalfUlp);
        case DType::MXFP4:  // a step of 2 below 6, for values in units of the scale up to 8
            return amax / 4;
        case DType::MXFP8:
            return amax * 0x1p-4;
        case DType::I32:
            break;
    }
    return -1;
}

TEST(Quantize, ErrorStaysWithinTheStepsOfTheFormat) {
    for (DType dtype : weight_types())
        for (float scale : {1.0f, 0.02f, 1e-3f}) {
            const int64_t n_out = 17, n_in = 512;
            const std::vector<float> values = normal_values(n_out * n_in, scale);
            float amax = 0;
            for (float v : values) amax = std::max(amax, std::fabs(v));
            const auto stored = quantized(dtype, values, n_out, n_in);
            const RoundTripError error = round_trip_error(dtype, values.data(), stored, n_out, n_in);
            // f8_e4m3 and f16 have an absolute step of 2^-9 and 2^-24 near zero, which small scales meet.
            const double absolute = dtype == DType::F8_E4M3 ? 0x1p-10 : 0x1p-25;
            EXPECT_LE(error.rmse, rmse_bound(dtype, amax) + absolute * (dtype != DType::F32)) << name(dtype) << scale;
            EXPECT_GE(error.max_error, error.rmse);
            EXPECT_EQ(error.bits_per_weight, 8.0 * static_cast<double>(stored.size()) / static_cast<double>(17 * 512));
        }
}

// Measured with the gguf 0.19 package on the same distribution (ggmlx/quant/README.md): ours must not be worse. The
// sampling error of an RMSE over 2^19 values is below 0.2 %.
TEST(Quantize, ErrorOnNormalValuesIsNotAboveThatOfTheGgufPackage) {
    const std::pair<DType, double> theirs[] = {
        {DType::Q8_0, 0.00534}, {DType::Q4_0, 0.0857}, {DType::Q4_1, 0.0781}, {DType::MXFP4, 0.1149}};
    const int64_t n_out = 128, n_in = 4096;
    for (float scale : {1.0f, 0.02f}) {
        const std::vector<float> values = normal_values(n_out * n_in, scale, 7);
        for (auto [dtype, rmse] : theirs) {
            const auto stored = quantized(dtype, values, n_out, n_in);
            EXPECT_LE(round_trip_error(dtype, values.data(), stored, n_out, n_in).rmse, rmse * scale * 1.004)
                << name(dtype) << " at scale " << scale;
        }
    }
}

// More bits, or the same bits with finer scales, may not be worse: q4_k against q4_0, q6_k against q4_k, q8_0 against
// q6_k.
TEST(Quantize, BetterTypesAreBetter) {
    const int64_t n_out = 32, n_in = 1024;
    const std::vector<float> values = normal_values(n_out * n_in, 0.02f, 3);
    double last = std::numeric_limits<double>::infinity();
    for (DType dtype : {DType::Q4_0, DType::Q4_K, DType::Q6_K, DType::Q8_0, DType::BF16, DType::F16, DType::F32}) {
        const auto stored = quantized(dtype, values, n_out, n_in);
        const double rmse = round_trip_error(dtype, values.data(), stored, n_out, n_in).rmse;
        EXPECT_LT(rmse, last) << name(dtype);
        last = rmse;
    }
}

TEST(Quantize, ExactlyRepresentableBlocksComeBackExactly) {
    std::mt19937 random(5);
    auto code = [&](int low, int high) {
        return static_cast<float>(std::uniform_int_distribution<int>(low, high)(random));
    };
    const int64_t n_out = 40, n_in = 64;
    for (DType dtype : {DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::MXFP4, DType::MXFP8}) {
        std::vector<float> values;
        for (int64_t block = 0; block < n_out * n_in / 32; ++block) {
            const float d = f16_to_f32(f32_to_f16(std::exp2(code(-10, 4)) * (1.0f + code(0, 1023) / 1024.0f)));
            const float power = std::exp2(code(-40, 40));
            // Each block uses the ends of its range: only then is the scale determined by the values.
            for (int k = 0; k < 32; ++k) switch (dtype) {
                    case DType::Q8_0:
                        values.push_back(d * (k == 0 ? -127.0f : code(-127, 127)));
                        break;
                    case DType::Q4_0:
                        values.push_back(d * (k == 3 ? -8.0f : code(-8, 7)));
                        break;
                    case DType::Q4_1:
                        values.push_back(d * (k == 5 ? 0.0f : k == 6 ? 15.0f : code(0, 15)) - 4 * d);
                        break;
                    case DType::MXFP4:
                        values.push_back(power * kE2M1Doubled[static_cast<int>(code(0, 15))]);
                        break;
                    default:
                        values.push_back(power * f8_e4m3_to_f32(static_cast<uint8_t>(code(0, 126))));
                }
        }
        const std::vector<float> back = round_trip(dtype, values, n_out, n_in);
        for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(back[i], values[i]) << name(dtype) << " value " << i;
    }
}

// An MX block converts without loss whatever its largest element: the scale found may differ, the values may not.
TEST(Quantize, MicroscalingBlocksWithUnusedRangeComeBackExactly) {
    const int64_t n_in = 32;
    for (int largest = 1; largest < 8; ++largest)
        for (int e : {0, 1, 2, 100, 127, 253, 254}) {
            std::vector<float> values;
            for (int k = 0; k < 32; ++k) {
                const float element = 0.5f * kE2M1Doubled[k % (largest + 1)];
                values.push_back(std::ldexp(k % 2 ? element : -element, e - 127));
            }
            if (!std::isfinite(std::ldexp(0.5f * kE2M1Doubled[largest], e - 127))) continue;
            const std::vector<float> back = round_trip(DType::MXFP4, values, 1, n_in);
            for (size_t k = 0; k < 32; ++k) ASSERT_EQ(back[k], values[k]) << largest << " at exponent " << e;
        }
}

TEST(Quantize, ScaleByteNeverMeansNaN) {
    for (float v : {0x1.8p127f, 0x1p127f, 0x1p-149f, 0x1p-126f, 0.0f})
        for (DType dtype : {DType::MXFP4, DType::MXFP8}) {
            std::vector<float> values(32, v);
            const auto stored = quantized(dtype, values, 1, 32);
            for (size_t r = 0; r < 16; ++r) EXPECT_NE(stored[stored.size() - 16 + r], std::byte{255});
            for (float back : round_trip(dtype, values, 1, 32)) EXPECT_TRUE(std::isfinite(back)) << v;
        }
}

TEST(Quantize, ZerosStayZeroAndPaddingRowsAreZeroBytes) {
    for (DType dtype : weight_types()) {
        const std::vector<float> zeros(256, 0.0f);
        for (float v : round_trip(dtype, zeros, 1, 256)) EXPECT_EQ(v, 0.0f) << name(dtype);
        if (!is_block(dtype)) continue;
        const std::vector<float> one_row = normal_values(256, 1.0f);
        const auto one = quantized(dtype, one_row, 1, 256);
        std::vector<float> padded(16 * 256, 0.0f);
        dequantize_rows(dtype, one, 16, 256, 0, 16, padded.data());
        for (size_t i = 256; i < padded.size(); ++i) ASSERT_EQ(padded[i], 0.0f) << name(dtype);
    }
}

TEST(Quantize, BytesDoNotDependOnThreads) {
    const int64_t n_out = 70, n_in = 512;
    const std::vector<float> values = normal_values(n_out * n_in, 0.3f);
    for (DType dtype : weight_types()) {
        const auto one = quantized(dtype, values, n_out, n_in, 1);
        for (int n_threads : {2, 3}) EXPECT_EQ(quantized(dtype, values, n_out, n_in, n_threads), one) << name(dtype);
    }
}

TEST(Quantize, AwkwardShapesRoundTripRowByRow) {
    for (DType dtype : weight_types())
        for (auto [n_out, n_in] : {std::pair<int64_t, int64_t>{1, 100}, {17, 172}, {16, 33}, {3, 1}, {33, 256}}) {
            if (storable_type(dtype, n_in) != dtype) continue;
            const std::vector<float> values = normal_values(n_out * n_in, 1.0f);
            const auto stored = quantized(dtype, values, n_out, n_in);
            const std::vector<float> all = round_trip(dtype, values, n_out, n_in);
            std::vector<float> row(static_cast<size_t>(n_in));
            for (int64_t i = 0; i < n_out; ++i) {
                dequantize_rows(dtype, stored, n_out, n_in, i, 1, row.data());
                EXPECT_TRUE(std::equal(row.begin(), row.end(), all.begin() + i * n_in)) << name(dtype) << i;
            }
        }
}

TEST(Quantize, RefusesWhatTheTypeCannotHold) {
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
    for (DType dtype : weight_types())
        for (float bad : {kNaN, kInfinity, -kInfinity}) {
            std::vector<float> values(20 * 256, 1.0f);
            values[18 * 256 + 200] = bad;
            const std::string message = message_of([&] { quantized(dtype, values, 20, 256); });
            if (is_block(dtype)) {
                EXPECT_NE(message.find("row 18, column 200"), std::string::npos) << name(dtype) << ": " << message;
            } else {
                EXPECT_EQ(message, "no error") << name(dtype);
            }
        }
    std::vector<float> large(256, 1e6f);
    EXPECT_NE(message_of([&] { quantized(DType::F16, large, 1, 256); }).find("65504"), std::string::npos);
    const std::vector<float> huge(256, std::numeric_limits<float>::max());
    for (DType dtype : {DType::BF16, DType::MXFP4, DType::MXFP8})
        EXPECT_NE(message_of([&] { quantized(dtype, huge, 1, 256); }).find("column 0"), std::string::npos);
    EXPECT_NE(message_of([&] { quantized(DType::Q4_1, large, 1, 256); }).find("column 0"), std::string::npos);
}

TEST(Quantize, LargestAllowedValuesStayFinite) {
    const std::pair<DType, float> largest[] = {{DType::Q8_0, 127 * 65504.0f},
                                               {DType::Q4_0, 7 * 65504.0f},
                                               {DType::Q4_1, 65504.0f},
                                               {DType::Q4_K, 63 * 65504.0f},
                                               {DType::Q6_K, 31 * 127 * 65504.0f}};
    for (auto [dtype, v] : largest) {
        std::vector<float> values(256);
        for (size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? v : i % 3 == 1 ? -v : v / 2;
        const std::vector<float> back = round_trip(dtype, values, 1, 256);
        for (size_t i = 0; i < values.size(); ++i)
            EXPECT_NEAR(back[i], values[i], rmse_bound(dtype, v) * 1.01) << name(dtype) << i;
    }
}

TEST(Quantize, RefusesSizesThatDoNotFit) {
    std::vector<float> values(512, 1.0f);
    std::vector<std::byte> small(100);
    EXPECT_THROW(quantize_matrix(DType::Q8_0, values.data(), 2, 256, small), Error);
    EXPECT_THROW(quantize_matrix(DType::I32, values.data(), 5, 5, small), Error);
    EXPECT_THROW(dequantize_rows(DType::F32, small, 5, 5, 3, 3, values.data()), Error);
    EXPECT_THROW(dequantize_rows(DType::F32, small, 5, 5, -1, 1, values.data()), Error);
    EXPECT_THROW(dequantize_rows(DType::Q4_0, small, 16, 32, 0, 1, values.data()), Error);
    EXPECT_NE(message_of([&] { quantized(DType::Q4_K, values, 1, 100); }).find("use q4_1"), std::string::npos);
}

TEST(StorableType, FallsBackWhereRowsDoNotSuit) {
    for (int64_t n_in : {1408, 1856, 2688, 100}) {
        const bool suits = n_in % 256 == 0;
        EXPECT_EQ(storable_type(DType::Q4_K, n_in), suits ? DType::Q4_K : DType::Q4_1);
        EXPECT_EQ(storable_type(DType::Q6_K, n_in), suits ? DType::Q6_K : DType::Q8_0);
        EXPECT_EQ(storable_type(DType::MXFP4, n_in), DType::MXFP4);
    }
    EXPECT_EQ(storable_type(DType::Q4_K, 2048), DType::Q4_K);
}

}  // namespace
}  // namespace ggmlx
