#include "support.h"

namespace ggmlx::test {
namespace {

/// Extents that a type can store, awkward ones first.
std::vector<std::pair<int64_t, int64_t>> sizes(DType dtype) {  // n_out, n_in
    if (info(dtype).block_len == 256) return {{1, 256}, {17, 512}, {33, 2304}};
    return {{1, 1}, {17, 100}, {16, 64}, {31, 172}, {5, 257}, {33, 1000}};
}

std::vector<float> matmul(Array& w, Array& x) { return run_floats(Op::Matmul, {}, {&w, &x}, {x.shape[0], w.shape[0]}); }

TEST(Matmul, EqualsTheFloat64DotProductOfItsOperands) {
    Random random(1);
    for (DType dtype : kWeightTypes) {
        for (auto [n_out, n_in] : sizes(dtype)) {
            Array w = random_weight(random, dtype, {n_out, n_in});
            Array x = random_array(random, {3, n_in}, 2.0f);
            const auto y = matmul(w, x);
            for (int64_t t = 0; t < 3; ++t) {
                for (int64_t r = 0; r < n_out; ++r) {
                    const Dot exact = exact_dot(w, r, x.as<float>() + t * n_in);
                    ASSERT_NEAR(y[static_cast<size_t>(t * n_out + r)], exact.value, exact.tolerance)
                        << name(dtype) << " [" << n_out << ", " << n_in << "] row " << r << " token " << t;
                }
            }
        }
    }
}

TEST(HeadMatmul, IsAMatmulOfEveryHead) {
    Random random(9);
    for (DType dtype : kWeightTypes) {
        const int64_t n_head = 3, n_out = 21, n_in = info(dtype).block_len == 256 ? 256 : 100, n_tokens = 4;
        Array w = random_weight(random, dtype, {n_head, n_out, n_in});
        Array x = random_array(random, {n_tokens, n_head, n_in});
        const auto y = run_floats(Op::HeadMatmul, {}, {&w, &x}, {n_tokens, n_head, n_out});
        for (int64_t h = 0; h < n_head; ++h) {
            Array head(dtype, {n_out, n_in}), rows(DType::F32, {n_tokens, n_in});
            std::copy_n(w.bytes.begin() + h * slice_bytes(dtype, {n_out, n_in}), head.bytes.size(), head.bytes.begin());
            for (int64_t t = 0; t < n_tokens; ++t)
                std::copy_n(x.as<float>() + (t * n_head + h) * n_in, n_in, rows.as<float>() + t * n_in);
            const auto expected = matmul(head, rows);
            for (int64_t t = 0; t < n_tokens; ++t)
                for (int64_t r = 0; r < n_out; ++r)
                    EXPECT_EQ(y[static_cast<size_t>((t * n_head + h) * n_out + r)],
                              expected[static_cast<size_t>(t * n_out + r)])
                        << name(dtype);
        }
    }
}

TEST(HeadMatmul, ReportsTheTokenThatCannotBeQuantized) {
    Random random(10);
    Array w = random_weight(random, DType::Q8_0, {3, 16, 32}), x = random_array(random, {2, 3, 32});
    Array y(DType::F32, {2, 3, 16});
    x.as<float>()[(1 * 3 + 2) * 32 + 5] = INFINITY;
    OpRun run(Op::HeadMatmul, {}, {&w, &x}, {&y});
    EXPECT_EQ(run.status.fault(), Fault::NonFinite);
    EXPECT_EQ(run.status.row(), 1);
}

TEST(Matmul, GivesATokenTheSameBitsAloneAndAmongOthers) {
    Random random(2);
    for (DType dtype : kWeightTypes) {
        const int64_t n_in = 512, n_out = 19;
        Array w = random_weight(random, dtype, {n_out, n_in});
        Array x = random_array(random, {4, n_in});
        const auto together = matmul(w, x);
        for (int64_t t = 0; t < 4; ++t) {
            Array one({1, n_in}, std::vector<float>(x.as<float>() + t * n_in, x.as<float>() + (t + 1) * n_in));
            EXPECT_EQ(matmul(w, one),
                      std::vector<float>(together.begin() + t * n_out, together.begin() + (t + 1) * n_out))
                << name(dtype);
        }
    }
}

TEST(Matmul, AddsPlainTypesByColumnModEight) {
    Random random(3);
    const int64_t n = 1003;
    Array w = random_weight(random, DType::F16, {1, n});
    Array x = random_array(random, {1, n});
    float p[8] = {};
    for (int64_t lane = 0; lane < 8; ++lane)
        for (int64_t k = lane; k < n; k += 8)
            p[lane] = std::fma(f16_to_f32(w.as<uint16_t>()[k]), x.as<float>()[k], p[lane]);
    const float a0 = p[0] + p[4], a1 = p[1] + p[5], a2 = p[2] + p[6], a3 = p[3] + p[7];
    const float b0 = a0 + a2, b1 = a1 + a3;
    EXPECT_EQ(matmul(w, x)[0], b0 + b1);
}

TEST(Matmul, AddsIntegerTypesByBlockModEight) {
    Random random(4);
    const int64_t blocks = 21, n = 32 * blocks;
    Array w = random_weight(random, DType::Q4_1, {1, n});
    Array x = random_array(random, {1, n});
    float p[8] = {};
    for (int64_t b = 0; b < blocks; ++b) {
        int8_t q[32];
        const float s_a = quantize_activation_block(x.as<float>() + 32 * b, 32, q);
        const TileQ4_1& tile = w.as<TileQ4_1>()[b];
        int products = 0, sum = 0;
        for (int k = 0; k < 32; ++k) {
            products += quant(tile, 0, k) * q[k];
            sum += q[k];
        }
        float& partial = p[b % 8];
        partial = std::fma(static_cast<float>(products), f16_to_f32(tile.d[0]) * s_a, partial);
        partial = std::fma(-static_cast<float>(sum), -f16_to_f32(tile.m[0]) * s_a, partial);
    }
    EXPECT_EQ(matmul(w, x)[0], ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7])));
}

TEST(Matmul, CountsSubBlocksOverTheWholeRow) {
    Random random(5);
    const int64_t n = 512;
    Array w = random_weight(random, DType::Q6_K, {1, n});
    Array x = random_array(random, {1, n});
    float p[8] = {};
    for (int64_t b = 0; b < n / 32; ++b) {
        int8_t q[32];
        const float s_a = quantize_activation_block(x.as<float>() + 32 * b, 32, q);
        const TileQ6_K& tile = w.as<TileQ6_K>()[b / 8];
        const int sub = static_cast<int>(b % 8);
        int half[2] = {};
        for (int k = 0; k < 32; ++k) half[k / 16] += quant(tile, 0, 32 * sub + k) * q[k];
        const int i = tile.sc[2 * sub][0] * half[0] + tile.sc[2 * sub + 1][0] * half[1];
        p[b % 8] = std::fma(static_cast<float>(i), f16_to_f32(tile.d[0]) * s_a, p[b % 8]);
    }
    EXPECT_EQ(matmul(w, x)[0], ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7])));
}

TEST(Matmul, AddsMxfp8ByBlockInOrderOfColumns) {
    Random random(6);
    const int64_t n = 300;
    Array w = random_weight(random, DType::MXFP8, {1, n});
    Array x = random_array(random, {1, n});
    float p[8] = {};
    for (int64_t k = 0; k < n; ++k)
        p[k / 32 % 8] =
            std::fma(value(w.as<TileMXFP8>()[k / 32], 0, static_cast<int>(k % 32)), x.as<float>()[k], p[k / 32 % 8]);
    EXPECT_EQ(matmul(w, x)[0], ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7])));
}

TEST(Matmul, StaysRightForLargeActivations) {  // cases.md N07: sums beyond f16
    Random random(7);
    for (DType dtype : kWeightTypes) {
        const int64_t n_in = info(dtype).block_len == 256 ? 256 : 64;
        std::vector<float> x(static_cast<size_t>(2 * n_in));
        for (size_t k = 0; k < 32; ++k) x[k] = 3000.0f;
        x[static_cast<size_t>(n_in + 5)] = 1e5f;
        Array w = random_weight(random, dtype, {16, n_in}), rows({2, n_in}, x);
        const auto y = matmul(w, rows);
        for (int64_t t = 0; t < 2; ++t) {
            for (int64_t r = 0; r < 16; ++r) {
                double exact = 0, magnitude = 0;
                for (int64_t k = 0; k < n_in; ++k) {
                    const auto [main, minimum] = weight_value(w, r, k);
                    exact += (main + minimum) * x[static_cast<size_t>(t * n_in + k)];
                    magnitude += (std::fabs(main) + std::fabs(minimum)) * x[static_cast<size_t>(t * n_in + k)];
                }
                // 127 times the rounded amax / 127 is off by one rounding; then at most 32 + 4 roundings of the sum.
                ASSERT_NEAR(y[static_cast<size_t>(t * 16 + r)], exact, 38 * kEps * magnitude) << name(dtype);
            }
        }
    }
}

TEST(Matmul, ReportsActivationsThatCannotBeQuantized) {
    Random random(8);
    Array w = random_weight(random, DType::Q8_0, {3, 64});
    for (float bad : {NAN, INFINITY, -INFINITY}) {
        Array x = random_array(random, {3, 64});
        x.as<float>()[2 * 64 + 40] = bad;
        Array y(DType::F32, {3, 3});
        OpRun run(Op::Matmul, {}, {&w, &x}, {&y});
        EXPECT_EQ(run.status.fault(), Fault::NonFinite);
        EXPECT_EQ(run.status.row(), 2);
        EXPECT_TRUE(std::isfinite(y.floats()[0]));
        EXPECT_TRUE(std::isnan(y.floats()[8]));
    }
}

TEST(GetRows, DecodesEveryType) {
    Random random(9);
    for (DType dtype : kWeightTypes) {
        const int64_t n = info(dtype).block_len == 256 ? 512 : 100;
        Array table = random_weight(random, dtype, {37, n});
        Array ids({4}, std::vector<int32_t>{36, 0, -1, 16});
        const auto y = run_floats(Op::GetRows, {}, {&table, &ids}, {4, n});
        for (int64_t i = 0; i < 4; ++i) {
            for (int64_t k = 0; k < n; ++k) {
                const int32_t id = ids.as<int32_t>()[i];
                const auto [main, minimum] = id < 0 ? WeightValue{} : weight_value(table, id, k);
                // rounded: d · sc (q6_k), scale · integer, and the subtraction of a minimum
                ASSERT_NEAR(y[static_cast<size_t>(i * n + k)], main + minimum,
                            3 * kEps * (std::fabs(main) + std::fabs(minimum)))
                    << name(dtype) << " id " << id << " column " << k;
            }
        }
    }
}

TEST(GetRows, FindsValuesByTheDocumentedBytes) {
    // Two K blocks and two row tiles of q8_0: tile [row / 16][k / 32] of 544 bytes, byte 64 · (k / 4) + 4 · row + k %
    // 4, the row's f16 scale at 512 + 2 · row. mxfp4: tile of 272 bytes, nibble of byte 64 · (k % 16 / 4) + 4 · row + k
    // % 4, low for k < 16; the row's exponent at 256 + row.
    const int64_t row = 21, k = 32 + 22;
    Array q8(DType::Q8_0, {32, 64}), fp4(DType::MXFP4, {32, 64});
    const size_t tile = 2 + 1;
    q8.bytes[544 * tile + 64 * 5 + 4 * 5 + 2] = std::byte{0xf9};   // -7
    q8.bytes[544 * tile + 512 + 2 * 5 + 1] = std::byte{0x38};      // 0x3800: 0.5
    fp4.bytes[272 * tile + 64 * 1 + 4 * 5 + 2] = std::byte{0xd0};  // high nibble 13: -3
    for (size_t t = 0; t < 4; ++t)
        for (size_t r = 0; r < 16; ++r) fp4.bytes[272 * t + 256 + r] = std::byte{128};  // 2
    Array ids({1}, std::vector<int32_t>{row});
    std::vector<float> expected(64);
    expected[k] = -3.5f;
    EXPECT_EQ(run_floats(Op::GetRows, {}, {&q8, &ids}, {1, 64}), expected);
    expected[k] = -6.0f;
    EXPECT_EQ(run_floats(Op::GetRows, {}, {&fp4, &ids}, {1, 64}), expected);
}

TEST(GetRows, ReportsIdsOutsideTheTable) {
    Random random(10);
    Array table = random_array(random, {5, 3});
    for (int32_t bad : {5, -2, INT32_MAX, INT32_MIN}) {
        Array ids({2}, std::vector<int32_t>{4, bad}), y({2, 3}, std::vector<float>(6, NAN));
        OpRun run(Op::GetRows, {}, {&table, &ids}, {&y});
        EXPECT_EQ(run.status.fault(), Fault::BadIndex);
        EXPECT_EQ(run.status.row(), 1);
        EXPECT_EQ(y.floats()[3], 0.0f);
        EXPECT_EQ(y.floats()[0], table.floats()[12]);
    }
}

}  // namespace
}  // namespace ggmlx::test
