#include "support.h"

namespace ggmlx::test {
namespace {

/// A small mixture: 5 tokens choose 2 of 4 experts; expert 2 is chosen by nobody, some slots are empty.
struct Mixture {
    int64_t n_expert = 4, n_embd, n_ff, n_tokens = 5, k = 2;
    SwiGLUParams activation{.alpha = 1.3f, .clamp = 2.5f, .up_offset = 1.0f};
    Array gate, up, down, gate_bias, up_bias, down_bias, x, ids, weights;
    bool has_bias;

    Mixture(DType dtype, bool bias)
        : n_embd(info(dtype).block_len == 256 ? 256 : 68),
          n_ff(info(dtype).block_len == 256 ? 512 : 100),
          gate(dtype, {1, 1, n_embd}),
          up(gate),
          down(gate),
          gate_bias(gate),
          up_bias(gate),
          down_bias(gate),
          x(gate),
          ids({n_tokens, k}, std::vector<int32_t>{0, 3, 3, 1, -1, 1, 0, 0, -1, -1}),
          weights(gate),
          has_bias(bias) {
        Random random(7);
        gate = random_weight(random, dtype, {n_expert, n_ff, n_embd});
        up = random_weight(random, dtype, {n_expert, n_ff, n_embd});
        down = random_weight(random, dtype, {n_expert, n_embd, n_ff});
        gate_bias = random_bias(random, n_ff);
        up_bias = random_bias(random, n_ff);
        down_bias = random_bias(random, n_embd);
        x = random_array(random, {n_tokens, n_embd});
        weights = random_array(random, {n_tokens, k});
    }

    Array random_bias(Random& random, int64_t n) const {
        Array b = random_array(random, {n_expert, n});
        b.slot_stride = 4 * n;
        return b;
    }

    ExpertsParams params() const { return {activation, has_bias}; }
    Shape rows_shape() const { return {n_tokens, k, n_embd}; }

    std::vector<float> experts() {
        std::vector<Array*> in = {&x, &ids, &weights, &gate, &up, &down};
        if (has_bias) in.insert(in.end(), {&gate_bias, &up_bias, &down_bias});
        return run_floats(Op::Experts, params(), in, {n_tokens, n_embd});
    }
};

/// A device that holds some of the experts in slots of its own, with gaps between them.
struct Device {
    Array slots;

    Device(const Mixture& m, const std::vector<int32_t>& table) : slots({m.n_expert}, table) {}

    Array store(Array& stack) {
        Array own = stack;
        own.slot_stride = stack.slot_stride + 64;
        own.bytes.assign(static_cast<size_t>(own.slot_stride * stack.shape[0]), std::byte{0x5a});
        for (int32_t e = 0; e < stack.shape[0]; ++e) {
            const int32_t slot = slots.as<int32_t>()[e];
            if (slot < 0) continue;
            std::copy_n(stack.bytes.begin() + e * stack.slot_stride, stack.slot_stride,
                        own.bytes.begin() + slot * own.slot_stride);
        }
        return own;
    }

    Array rows(Mixture& m) {
        Array gate = store(m.gate), up = store(m.up), down = store(m.down);
        Array gate_bias = store(m.gate_bias), up_bias = store(m.up_bias), down_bias = store(m.down_bias);
        std::vector<Array*> in = {&m.x, &m.ids, &slots, &gate, &up, &down};
        if (m.has_bias) in.insert(in.end(), {&gate_bias, &up_bias, &down_bias});
        return {m.rows_shape(), run_floats(Op::ExpertRows, m.params(), in, m.rows_shape())};
    }

    Array multiply(Mixture& m, Array& weight, Array& bias, Array& input) {
        Array own = store(weight), own_bias = store(bias);
        std::vector<Array*> in = {&input, &m.ids, &slots, &own};
        if (m.has_bias) in.push_back(&own_bias);
        const Shape shape{m.n_tokens, m.k, weight.shape[1]};
        return {shape, run_floats(Op::ExpertMatmul, ExpertsParams{{}, m.has_bias}, in, shape)};
    }
};

std::vector<float> sum(Mixture& m, const std::vector<Array*>& parts) {
    std::vector<Array*> in = {&m.weights, &m.ids};
    in.insert(in.end(), parts.begin(), parts.end());
    return run_floats(Op::ExpertSum, {}, in, {m.n_tokens, m.n_embd});
}

/// Experts composed of other ops: one token and one expert at a time.
std::vector<float> composed(Mixture& m) {
    std::vector<float> y(static_cast<size_t>(m.n_tokens * m.n_embd));
    const auto slice = [&](Array& stack, int32_t e) {
        Array s(stack.dtype, {stack.shape[1], stack.shape[2]});
        std::copy_n(stack.bytes.begin() + e * stack.slot_stride, s.bytes.size(), s.bytes.begin());
        return s;
    };
    const auto apply = [&](Array& stack, Array& bias, int32_t e, Array& x) {
        Array w = slice(stack, e);
        Array product({1, w.shape[0]}, run_floats(Op::Matmul, {}, {&w, &x}, {1, w.shape[0]}));
        if (!m.has_bias) return product;
        const float* b = bias.as<float>() + e * w.shape[0];
        Array row({w.shape[0]}, std::vector<float>(b, b + w.shape[0]));
        return Array(product.shape, run_floats(Op::Add, {}, {&product, &row}, product.shape));
    };
    for (int64_t t = 0; t < m.n_tokens; ++t) {
        Array x({1, m.n_embd},
                std::vector<float>(m.x.as<float>() + t * m.n_embd, m.x.as<float>() + (t + 1) * m.n_embd));
        for (int64_t s = 0; s < m.k; ++s) {
            const int32_t e = m.ids.as<int32_t>()[t * m.k + s];
            if (e < 0) continue;
            Array gate = apply(m.gate, m.gate_bias, e, x), up = apply(m.up, m.up_bias, e, x);
            Array hidden(gate.shape, run_floats(Op::SwiGLU, m.activation, {&gate, &up}, gate.shape));
            Array row = apply(m.down, m.down_bias, e, hidden);
            for (int64_t i = 0; i < m.n_embd; ++i) {
                const float weighted = m.weights.as<float>()[t * m.k + s] * row.as<float>()[i];
                y[static_cast<size_t>(t * m.n_embd + i)] += weighted;
            }
        }
    }
    return y;
}

class Experts : public testing::TestWithParam<std::tuple<DType, bool>> {
  protected:
    Mixture m{std::get<0>(GetParam()), std::get<1>(GetParam())};
};

TEST_P(Experts, AreMatmulsAnActivationAndASumInSlotOrder) { EXPECT_EQ(m.experts(), composed(m)); }

TEST_P(Experts, GiveTheSameBitsOnOneDeviceWithPermutedSlots) {
    Device all(m, {2, 0, 3, 1});
    Array rows = all.rows(m);
    EXPECT_EQ(sum(m, {&all.slots, &rows}), m.experts());
}

TEST_P(Experts, GiveTheSameBitsOnTwoDevices) {
    Device a(m, {1, -1, 0, -1}), b(m, {-1, 2, -1, 0});
    Array rows_a = a.rows(m), rows_b = b.rows(m);
    EXPECT_EQ(sum(m, {&a.slots, &rows_a, &b.slots, &rows_b}), m.experts());
    EXPECT_EQ(sum(m, {&b.slots, &rows_b, &a.slots, &rows_a}), m.experts());
    const int64_t n = m.n_embd;
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(rows_a.as<float>()[1 * n + i], 0.0f) << "expert 3 is not on this device";
}

TEST_P(Experts, GiveTheSameBitsWhenTheirMatricesAreApart) {
    Device a(m, {1, -1, 0, -1}), b(m, {-1, 2, -1, 0}), all(m, {3, 2, 1, 0});
    const auto joined = [&](Array& weight, Array& bias) {
        Array rows_a = a.multiply(m, weight, bias, m.x), rows_b = b.multiply(m, weight, bias, m.x);
        return Array(rows_a.shape,
                     run_floats(Op::ExpertSelect, {}, {&m.ids, &a.slots, &rows_a, &b.slots, &rows_b}, rows_a.shape));
    };
    Array gate = joined(m.gate, m.gate_bias), up = joined(m.up, m.up_bias);
    Array hidden(gate.shape, run_floats(Op::SwiGLU, m.activation, {&gate, &up}, gate.shape));
    Array rows = all.multiply(m, m.down, m.down_bias, hidden);
    EXPECT_EQ(sum(m, {&all.slots, &rows}), m.experts());
}

INSTANTIATE_TEST_SUITE_P(AllTypes, Experts, testing::Combine(testing::ValuesIn(kWeightTypes), testing::Bool()),
                         [](const auto& param) {
                             return std::string(name(std::get<0>(param.param))) +
                                    (std::get<1>(param.param) ? "_bias" : "");
                         });

TEST(ExpertsExact, EqualTheFloat64MixtureForF32Weights) {
    Mixture m(DType::F32, false);
    m.activation = {};
    const auto y = m.experts();
    const auto product = [](Array& stack, int64_t e, int64_t r, const std::vector<double>& x, double& magnitude) {
        double sum = 0;
        magnitude = 0;
        for (size_t k = 0; k < x.size(); ++k) {
            const double w = stack.as<float>()[(e * stack.shape[1] + r) * stack.shape[2] + static_cast<int64_t>(k)];
            sum += w * x[k];
            magnitude += std::fabs(w * x[k]);
        }
        return sum;
    };
    for (int64_t t = 0; t < m.n_tokens; ++t) {
        std::vector<double> exact(static_cast<size_t>(m.n_embd)), tolerance(exact.size());
        const std::vector<double> x(m.x.as<float>() + t * m.n_embd, m.x.as<float>() + (t + 1) * m.n_embd);
        for (int64_t s = 0; s < m.k; ++s) {
            const int32_t e = m.ids.as<int32_t>()[t * m.k + s];
            if (e < 0) continue;
            const double in_sum = (static_cast<double>(m.n_embd) / 8 + 5) * kEps;
            std::vector<double> hidden, error;
            for (int64_t r = 0; r < m.n_ff; ++r) {
                double g_size = 0, u_size = 0;
                const double g = product(m.gate, e, r, x, g_size), u = product(m.up, e, r, x, u_size);
                const double silu = g / (1 + std::exp(-g));
                hidden.push_back(silu * u);
                // silu has slopes below 1.1 and is rounded about five times
                error.push_back(1.1 * in_sum * g_size * (std::fabs(u) + in_sum * u_size) +
                                std::fabs(silu) * in_sum * u_size + 6 * kEps * std::fabs(silu * u));
            }
            const double w = m.weights.as<float>()[t * m.k + s];
            for (int64_t i = 0; i < m.n_embd; ++i) {
                double size = 0, error_size = 0;
                const double row = product(m.down, e, i, hidden, size);
                product(m.down, e, i, error, error_size);
                exact[static_cast<size_t>(i)] += w * row;
                tolerance[static_cast<size_t>(i)] +=
                    std::fabs(w) *
                    (error_size + (static_cast<double>(m.n_ff) / 8 + 5 + 3) * kEps * (size + error_size));
            }
        }
        for (int64_t i = 0; i < m.n_embd; ++i)
            ASSERT_NEAR(y[static_cast<size_t>(t * m.n_embd + i)], exact[static_cast<size_t>(i)],
                        tolerance[static_cast<size_t>(i)]);
    }
}

TEST(ExpertsExact, ATokenWithoutExpertsGetsZeroAndAnUnusedExpertIsNotRead) {
    Mixture m(DType::MXFP8, false);
    std::fill_n(m.gate.bytes.begin() + 2 * m.gate.slot_stride, m.gate.slot_stride, std::byte{0xff});  // NaN
    const auto y = m.experts();
    for (float v : y) EXPECT_TRUE(std::isfinite(v));
    for (int64_t i = 0; i < m.n_embd; ++i) EXPECT_EQ(y[static_cast<size_t>(4 * m.n_embd + i)], 0.0f);
}

TEST(ExpertsExact, ReportIdsAndSlotsOutsideTheirTables) {
    for (int32_t bad : {4, -2}) {
        Mixture m(DType::Q8_0, false);
        m.ids.as<int32_t>()[3] = bad;
        Array y({m.n_tokens, m.n_embd}, std::vector<float>(static_cast<size_t>(m.n_tokens * m.n_embd)));
        OpRun run(Op::Experts, m.params(), {&m.x, &m.ids, &m.weights, &m.gate, &m.up, &m.down}, {&y});
        EXPECT_EQ(run.status.fault(), Fault::BadIndex);
        EXPECT_EQ(run.status.row(), 1);
    }
    Mixture m(DType::Q8_0, false);
    Array rows(DType::F32, m.rows_shape()), slots({4}, std::vector<int32_t>{0, 1, 2, 4});
    OpRun run(Op::ExpertRows, m.params(), {&m.x, &m.ids, &slots, &m.gate, &m.up, &m.down}, {&rows});
    EXPECT_EQ(run.status.fault(), Fault::BadIndex);
    EXPECT_EQ(run.status.row(), 0);
}

TEST(ExpertsExact, AnExpertThatNoDeviceHasIsReported) {
    Mixture m(DType::F32, false);
    Array rows(DType::F32, m.rows_shape()), slots({4}, std::vector<int32_t>{0, -1, 1, 2});
    Array y(DType::F32, {m.n_tokens, m.n_embd}), selected(DType::F32, m.rows_shape());
    OpRun summed(Op::ExpertSum, {}, {&m.weights, &m.ids, &slots, &rows}, {&y});
    OpRun joined(Op::ExpertSelect, {}, {&m.ids, &slots, &rows}, {&selected});
    for (OpRun* run : {&summed, &joined}) {
        EXPECT_EQ(run->status.fault(), Fault::BadIndex);
        EXPECT_EQ(run->status.row(), 1);
    }
}

TEST(ExpertSum, AddsRoundedProductsFromZeroInSlotOrder) {
    Array weights({1, 3}, std::vector<float>{0.1f, -0.7f, 1e-3f}), ids({1, 3}, std::vector<int32_t>{1, 0, 1});
    Array slots({2}, std::vector<int32_t>{1, 0}), rows({1, 3, 1}, std::vector<float>{3.3f, 0.123456f, 1e4f});
    const float a = 0.1f * 3.3f, b = -0.7f * 0.123456f, c = 1e-3f * 1e4f;
    const auto y = run_floats(Op::ExpertSum, {}, {&weights, &ids, &slots, &rows}, {1, 1});
    EXPECT_EQ(y[0], ((0.0f + a) + b) + c);
}

}  // namespace
}  // namespace ggmlx::test
