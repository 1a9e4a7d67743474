// Ops on rows and single values: add, mul, scale, clamp, sigmoid_gate, slice, concat, swiglu, rms_norm, softmax, top_k,
// divide_by_sum, copy.

#include <numeric>

#include "support.h"

namespace ggmlx::test {
namespace {

const std::vector<Shape> kShapes = {{1, 1}, {17, 100}, {1, 64}, {3, 172}, {2, 3, 257}};

TEST(Elementwise, AddsAndMultipliesRowsAndWholes) {
    Random random(1);
    for (const Shape& shape : kShapes) {
        Array a = random_array(random, shape), b = random_array(random, shape), row = random_array(random, {shape[-1]});
        const auto sum = run_floats(Op::Add, {}, {&a, &b}, shape), product = run_floats(Op::Mul, {}, {&a, &row}, shape);
        const auto scaled = run_floats(Op::Scale, ScaleParams{0.3f}, {&a}, shape);
        for (size_t i = 0; i < sum.size(); ++i) {
            const float x = a.floats()[i];
            EXPECT_EQ(sum[i], x + b.floats()[i]);
            EXPECT_EQ(product[i], x * row.floats()[i % static_cast<size_t>(shape[-1])]);
            EXPECT_EQ(scaled[i], 0.3f * x);
        }
    }
}

TEST(Clamp, LimitsBothWaysAndKeepsNaN) {
    Array x({5}, std::vector<float>{-2, -1.5f, 0.25f, 7, NAN});
    const auto y = run_floats(Op::Clamp, ClampParams{1.5f}, {&x}, {5});
    EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 4), (std::vector<float>{-1.5f, -1.5f, 0.25f, 1.5f}));
    EXPECT_TRUE(std::isnan(y[4]));
}

TEST(SigmoidGate, WeighsRows) {
    Random random(8);
    Array x = random_array(random, {17, 100}), gate = random_array(random, {17, 1}, 4.0f);
    const auto y = run_floats(Op::SigmoidGate, {}, {&x, &gate}, x.shape);
    for (size_t i = 0; i < y.size(); ++i) {
        const double g = gate.floats()[i / 100], exact = x.floats()[i] / (1.0 + std::exp(-g));
        // exponential (2), addition, division, product
        ASSERT_NEAR(y[i], exact, 5 * kEps * std::fabs(exact));
    }
}

TEST(Slice, TakesAPartOfEveryRow) {
    Array x({2, 2, 4}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
    EXPECT_EQ(run_floats(Op::Slice, SliceParams{1}, {&x}, {2, 2, 2}), (std::vector<float>{1, 2, 5, 6, 9, 10, 13, 14}));
    EXPECT_EQ(run_floats(Op::Slice, SliceParams{0}, {&x}, {2, 2, 4}), x.floats());
}

TEST(Concat, PutsRowsBehindRows) {
    Array a({2, 1, 2}, std::vector<float>{1, 2, 3, 4}), b({2, 1, 1}, std::vector<float>{5, 6});
    EXPECT_EQ(run_floats(Op::Concat, {}, {&a, &b}, {2, 1, 3}), (std::vector<float>{1, 2, 5, 3, 4, 6}));
}

TEST(SwiGLU, FollowsItsParameters) {
    Random random(2);
    for (const SwiGLUParams& p : {SwiGLUParams{}, SwiGLUParams{.alpha = 1.702f, .clamp = 7.0f, .up_offset = 1.0f},
                                  SwiGLUParams{.alpha = 1.0f, .clamp = 0.5f, .up_offset = 0.0f}}) {
        Array gate = random_array(random, {17, 100}, 6.0f), up = random_array(random, {17, 100}, 6.0f);
        const auto y = run_floats(Op::SwiGLU, p, {&gate, &up}, gate.shape);
        for (size_t i = 0; i < y.size(); ++i) {
            double g = gate.floats()[i], u = up.floats()[i];
            if (p.clamp > 0) {
                g = std::min<double>(g, p.clamp);
                u = std::clamp<double>(u, -p.clamp, p.clamp);
            }
            const double exact = g / (1.0 + std::exp(-p.alpha * g)) * (u + p.up_offset);
            // exponential (2), the rounded argument (|alpha g|), two additions, division, product
            const double relative = (7 + std::fabs(p.alpha * g)) * kEps;
            ASSERT_NEAR(y[i], exact, relative * std::fabs(exact) + 1e-30) << i;
        }
    }
}

TEST(SwiGLU, LimitsTheGateFromAboveOnly) {
    Array gate({4}, std::vector<float>{100, -100, 2, -2}), up({4}, std::vector<float>{1, 1, 100, -100});
    const auto y = run_floats(Op::SwiGLU, SwiGLUParams{.clamp = 3.0f}, {&gate, &up}, {4});
    EXPECT_NEAR(y[0], 3.0 / (1.0 + std::exp(-3.0)), 8 * kEps * 3);
    EXPECT_EQ(y[1], 0.0f);  // e^100 is infinite in float32
    EXPECT_NEAR(y[2], 3 * 2.0 / (1.0 + std::exp(-2.0)), 8 * kEps * 6);
    EXPECT_NEAR(y[3], 3 * 2.0 / (1.0 + std::exp(2.0)), 8 * kEps * 6);
}

TEST(RmsNorm, DividesByTheRootOfTheMeanSquare) {
    Random random(3);
    for (const Shape& shape : kShapes) {
        const int64_t n = shape[-1];
        Array x = random_array(random, shape, 3.0f), weight = random_array(random, {n});
        const auto with = run_floats(Op::RmsNorm, RmsNormParams{1e-5f}, {&x, &weight}, shape);
        const auto without = run_floats(Op::RmsNorm, RmsNormParams{1e-5f}, {&x}, shape);
        for (int64_t t = 0; t < shape.n_rows(); ++t) {
            const float* row = x.as<float>() + t * n;
            const double squares =
                std::inner_product(row, row + n, row, 0.0, std::plus<>(), [](double a, double b) { return a * b; });
            const double s = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-5f);
            // half the error of the sum (its square root), then mean, eps, root, reciprocal and two products
            const double relative = (static_cast<double>(n) / 16 + 8) * kEps;
            for (int64_t k = 0; k < n; ++k) {
                const double exact = row[k] * s, weighted = exact * weight.as<float>()[k];
                ASSERT_NEAR(without[static_cast<size_t>(t * n + k)], exact, relative * std::fabs(exact));
                ASSERT_NEAR(with[static_cast<size_t>(t * n + k)], weighted, relative * std::fabs(weighted));
            }
        }
    }
}

TEST(RmsNorm, OfZerosIsZero) {
    Array x({1, 5}, std::vector<float>(5));
    EXPECT_EQ(run_floats(Op::RmsNorm, RmsNormParams{1e-6f}, {&x}, {1, 5}), std::vector<float>(5));
}

TEST(Softmax, EqualsTheFloat64One) {
    Random random(4);
    for (const Shape& shape : kShapes) {
        const int64_t n = shape[-1];
        Array x = random_array(random, shape, 10.0f);
        const auto y = run_floats(Op::Softmax, {}, {&x}, shape);
        for (int64_t t = 0; t < shape.n_rows(); ++t) {
            const float* row = x.as<float>() + t * n;
            const double largest = *std::max_element(row, row + n);
            double sum = 0;
            for (int64_t k = 0; k < n; ++k) sum += std::exp(row[k] - largest);
            for (int64_t k = 0; k < n; ++k) {
                const double exact = std::exp(row[k] - largest) / sum;
                // exponentials above and below (2 each), the rounded difference, the sum, the division
                const double relative = (static_cast<double>(n) / 8 + 8 + std::fabs(row[k] - largest)) * kEps;
                ASSERT_NEAR(y[static_cast<size_t>(t * n + k)], exact, relative * exact);
            }
        }
    }
}

TEST(Softmax, DoesNotOverflow) {
    Array x({1, 3}, std::vector<float>{3e38f, 3e38f, -3e38f});
    EXPECT_EQ(run_floats(Op::Softmax, {}, {&x}, {1, 3}), (std::vector<float>{0.5f, 0.5f, 0.0f}));
}

struct TopKResult {
    std::vector<float> weights;
    std::vector<int32_t> ids;
    Fault fault;
    int64_t row;
};
TopKResult top_k(const std::vector<float>& values, int64_t n_tokens, int32_t k, std::vector<int32_t> rows = {}) {
    Array x({n_tokens, static_cast<int64_t>(values.size()) / n_tokens}, values);
    Array mask({n_tokens}, rows.empty() ? std::vector<int32_t>(static_cast<size_t>(n_tokens)) : rows);
    Array weights(DType::F32, {n_tokens, k}), ids(DType::I32, {n_tokens, k});
    std::vector<Array*> in = {&x};
    if (!rows.empty()) in.push_back(&mask);
    OpRun run(Op::TopK, TopKParams{k}, in, {&weights, &ids});
    return {
        weights.floats(), {ids.as<int32_t>(), ids.as<int32_t>() + n_tokens * k}, run.status.fault(), run.status.row()};
}

TEST(TopK, TakesTheLargestAndOfEqualsTheLowestIndex) {
    const auto top = top_k({1, 5, 3, 5, -1, 3}, 1, 4);
    EXPECT_EQ(top.ids, (std::vector<int32_t>{1, 3, 2, 5}));
    EXPECT_EQ(top.weights, (std::vector<float>{5, 5, 3, 3}));
    EXPECT_EQ(top.fault, Fault::None);
    EXPECT_EQ(top_k({-0.0f, 0.0f, -1, -0.0f}, 1, 3).ids, (std::vector<int32_t>{0, 1, 3}));
    EXPECT_EQ(top_k({2, 2, 2, 1, 2, 3}, 2, 3).ids, (std::vector<int32_t>{0, 1, 2, 2, 1, 0}));
}

TEST(TopK, TellsApartWhatWouldTieInBf16) {  // cases.md N09
    EXPECT_EQ(top_k({1.0f, 1.0001f}, 1, 1).ids[0], 1);
}

TEST(TopK, ReportsARowWithANonFiniteValue) {  // cases.md N05
    for (float bad : {NAN, INFINITY, -INFINITY}) {
        const auto top = top_k({1, 2, 3, 4, bad, 0}, 2, 2);
        EXPECT_EQ(top.fault, Fault::NonFinite);
        EXPECT_EQ(top.row, 1);
        EXPECT_EQ(top.ids, (std::vector<int32_t>{2, 1, 0, 1}));
        EXPECT_EQ(top.weights, (std::vector<float>{3, 2, 0, 0}));
    }
}

TEST(TopK, GivesAPaddedRowNothing) {
    const auto top = top_k({1, 2, NAN, 4}, 2, 2, {0, -1});
    EXPECT_EQ(top.fault, Fault::None);
    EXPECT_EQ(top.ids, (std::vector<int32_t>{1, 0, -1, -1}));
    EXPECT_EQ(top.weights, (std::vector<float>{2, 1, 0, 0}));
}

TEST(DivideBySum, AddsInOrderAndHasAFloor) {
    Random random(5);
    Array x = random_array(random, {17, 6});
    for (int i = 0; i < 17 * 6; ++i) x.as<float>()[i] = std::fabs(x.as<float>()[i]);
    const auto y = run_floats(Op::DivideBySum, {}, {&x}, {17, 6});
    for (size_t t = 0; t < 17; ++t) {
        const float* row = x.as<float>() + 6 * t;
        const float sum = ((((row[0] + row[1]) + row[2]) + row[3]) + row[4]) + row[5];
        for (size_t k = 0; k < 6; ++k) EXPECT_EQ(y[6 * t + k], row[k] / sum);
    }
    Array zeros({1, 3}, std::vector<float>(3));
    EXPECT_EQ(run_floats(Op::DivideBySum, {}, {&zeros}, {1, 3}), std::vector<float>(3));
    Array tiny({1, 2}, std::vector<float>{1e-21f, 1e-21f});
    EXPECT_EQ(run_floats(Op::DivideBySum, {}, {&tiny}, {1, 2})[0], 1e-21f / 1e-20f);
}

TEST(Copy, MovesBytesOfAnyType) {
    Random random(6);
    Array x = random_weight(random, DType::Q4_K, {17, 256}), y(DType::Q4_K, {17, 256});
    OpRun run(Op::Copy, {}, {&x}, {&y});
    EXPECT_EQ(x.bytes, y.bytes);
    EXPECT_TRUE(run.status.ok());
}

}  // namespace
}  // namespace ggmlx::test
