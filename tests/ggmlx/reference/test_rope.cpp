#include "support.h"

namespace ggmlx::test {
namespace {

Array table_of(const std::vector<int32_t>& positions, const RopeTableParams& params) {
    Array p({static_cast<int64_t>(positions.size())}, positions);
    const Shape shape{p.shape[0], static_cast<int64_t>(params.inv_freq.size()), 2};
    return {shape, run_floats(Op::RopeTable, params, {&p}, shape)};
}

TEST(RopeTable, HoldsCosineAndSineOfTheRoundedAngle) {
    const RopeTableParams params{.inv_freq = {1.0f, 0.1f, 1e-4f}, .magnitude = 1.25f};
    const std::vector<int32_t> positions = {0, 1, 131071};
    Array table = table_of(positions, params);
    for (size_t t = 0; t < 3; ++t) {
        for (size_t i = 0; i < 3; ++i) {
            const double angle = static_cast<float>(positions[t]) * params.inv_freq[i];
            const float* pair = table.as<float>() + 2 * (3 * t + i);
            EXPECT_NEAR(pair[0], 1.25 * std::cos(angle), 1.25 * 2 * kEps);
            EXPECT_NEAR(pair[1], 1.25 * std::sin(angle), 1.25 * 2 * kEps);
        }
    }
}

TEST(Rope, RotatesPairsAndPassesTheRest) {
    Random random(1);
    const RopeTableParams params{.inv_freq = {1.0f, 0.3f, 0.01f}};
    Array table = table_of({0, 7, 1000}, params), x = random_array(random, {3, 2, 11});
    for (bool interleaved : {false, true}) {
        for (bool inverse : {false, true}) {
            const RopeParams rope{.first = 4, .interleaved = interleaved, .inverse = inverse};
            const auto y = run_floats(Op::Rope, rope, {&x, &table}, x.shape);
            std::vector<float> expected = x.floats();
            for (size_t row = 0; row < 6; ++row) {
                for (size_t i = 0; i < 3; ++i) {
                    const size_t k0 = 11 * row + 4 + (interleaved ? 2 * i : i), k1 = k0 + (interleaved ? 1 : 3);
                    const float c = table.as<float>()[2 * (3 * (row / 2) + i)];
                    const float s = table.as<float>()[2 * (3 * (row / 2) + i) + 1] * (inverse ? -1.0f : 1.0f);
                    const float x0 = x.floats()[k0], x1 = x.floats()[k1];
                    const float a = x0 * c, b = x1 * s, d = x1 * c, e = x0 * s;
                    expected[k0] = a - b;
                    expected[k1] = d + e;
                }
            }
            EXPECT_EQ(y, expected) << interleaved << inverse;
        }
    }
}

TEST(Rope, TurnsAQuarter) {
    Array table({1, 1, 2}, std::vector<float>{0, 1}), x({1, 1, 2}, std::vector<float>{3, 4});
    EXPECT_EQ(run_floats(Op::Rope, RopeParams{}, {&x, &table}, {1, 1, 2}), (std::vector<float>{-4, 3}));
    EXPECT_EQ(run_floats(Op::Rope, RopeParams{.inverse = true}, {&x, &table}, {1, 1, 2}), (std::vector<float>{4, -3}));
}

TEST(Rope, MayWorkInPlace) {
    Random random(2);
    Array table = table_of({5}, {.inv_freq = {1.0f, 0.3f}}), x = random_array(random, {1, 2, 5});
    const auto expected = run_floats(Op::Rope, RopeParams{}, {&x, &table}, x.shape);
    OpRun run(Op::Rope, RopeParams{}, {&x, &table}, {&x});
    EXPECT_EQ(x.floats(), expected);
}

}  // namespace
}  // namespace ggmlx::test
