// Ops on rows and on single values.

#include "ggmlx/backend/cpu_cases.h"
#include "ggmlx/graph/ops.h"

namespace ggmlx::test {
namespace {

class CpuRows : public testing::TestWithParam<CaseOf> {};

TEST_P(CpuRows, GivesTheBitsOfTheReference) { expect_reference_bits(GetParam()); }
GGMLX_ON_CUDA(CpuRows)

std::vector<CaseOf> row_cases() {
    std::vector<CaseOf> cases;
    const auto add_case = [&](std::string label, std::function<void(OpCase&, Random&)> build) {
        cases.push_back({std::move(label), std::move(build)});
    };
    for (int64_t n : {1, 7, 8, 100, 257, 5000}) {
        const std::string suffix = " " + std::to_string(n);
        add_case("rms_norm" + suffix, [=](OpCase& c, Random& random) {
            rms_norm(c.graph, c.input(random_array(random, {3, n})), {}, 1e-6f);
        });
        add_case("rms_norm with weight" + suffix, [=](OpCase& c, Random& random) {
            const Tensor x = c.input(random_array(random, {2, 3, n}));
            rms_norm(c.graph, x, c.weight(random_array(random, {n})), 1e-5f);
        });
        add_case("softmax" + suffix, [=](OpCase& c, Random& random) {
            softmax(c.graph, c.input(random_array(random, {5, n}, 60.0f)));  // some underflow
        });
        add_case("divide_by_sum" + suffix, [=](OpCase& c, Random& random) {
            divide_by_sum(c.graph, c.input(random_array(random, {3, n})));
        });
        for (bool repeat : {false, true}) {
            const Shape shape = repeat ? Shape{n} : Shape{3, n};
            add_case("add" + suffix + (repeat ? " row" : ""), [=](OpCase& c, Random& random) {
                const Tensor a = c.input(random_array(random, {3, n}));
                add(c.graph, a, c.input(random_array(random, shape)));
            });
            add_case("mul" + suffix + (repeat ? " row" : ""), [=](OpCase& c, Random& random) {
                const Tensor a = c.input(random_array(random, {3, n}));
                mul(c.graph, a, c.input(random_array(random, shape)));
            });
        }
        add_case("scale" + suffix, [=](OpCase& c, Random& random) {
            scale(c.graph, c.input(random_array(random, {3, n})), 1.7f);
        });
        add_case("clamp" + suffix, [=](OpCase& c, Random& random) {
            clamp(c.graph, c.input(random_array(random, {3, n}, 3.0f)), 1.25f);
        });
        add_case("sigmoid_gate" + suffix, [=](OpCase& c, Random& random) {
            const Tensor x = c.input(random_array(random, {3, n}));
            sigmoid_gate(c.graph, x, c.input(random_array(random, {3, 1}, 60.0f)));
        });
        add_case("slice" + suffix, [=](OpCase& c, Random& random) {
            slice(c.graph, c.input(random_array(random, {3, 2, n + 5})), 3, n);
        });
        add_case("concat" + suffix, [=](OpCase& c, Random& random) {
            const Tensor a = c.input(random_array(random, {3, 2, n}));
            concat(c.graph, a, c.input(random_array(random, {3, 2, 3})));
        });
        add_case("copy" + suffix, [=](OpCase& c, Random& random) {
            copy(c.graph, c.input(random_array(random, {3, n})));
        });
        add_case("swiglu" + suffix, [=](OpCase& c, Random& random) {
            const Tensor gate = c.input(random_array(random, {2, n}, 50.0f));  // exp overflows and underflows
            swiglu(c.graph, gate, c.input(random_array(random, {2, n})));
        });
        add_case("swiglu clamped" + suffix, [=](OpCase& c, Random& random) {
            const Tensor gate = c.input(random_array(random, {2, n}, 5.0f));
            swiglu(c.graph, gate, c.input(random_array(random, {2, n}, 5.0f)),
                   {.alpha = 1.702f, .clamp = 7.0f, .up_offset = 1.0f});
        });
    }
    add_case("divide_by_sum of zeros", [](OpCase& c, Random&) {
        divide_by_sum(c.graph, c.input({{1, 9}, std::vector<float>(9, 0.0f)}));
    });
    add_case("top_k", [](OpCase& c, Random& random) { top_k(c.graph, c.input(random_array(random, {7, 257})), 8); });
    add_case("top_k of ties", [](OpCase& c, Random& random) {
        std::vector<float> x(5 * 64);
        for (float& v : x) v = static_cast<float>(random() % 5) - 2.0f;
        x[3] = -0.0f;
        top_k(c.graph, c.input({{5, 64}, x}), 20);
    });
    add_case("top_k of all", [](OpCase& c, Random& random) {
        top_k(c.graph, c.input(random_array(random, {2, 6})), 6);
    });
    add_case("top_k with padded rows", [](OpCase& c, Random& random) {
        Array x = random_array(random, {3, 16});
        x.as<float>()[16] = NAN;  // in a padded row: no report
        const Tensor rows = c.input(ints({3}, {0, -1, 5}));
        top_k(c.graph, c.input(std::move(x)), 4, rows);
    });
    using Score = RouterParams::Score;
    for (const RouterParams& p :
         {RouterParams{.score = Score::Softmax, .k = 8, .normalize = true},
          RouterParams{
              .score = Score::Sigmoid, .k = 6, .n_groups = 8, .groups_used = 3, .group_best = 2, .scale = 2.5f},
          RouterParams{.score = Score::SoftmaxOfChosen, .k = 4}})
        add_case("router " + std::to_string(p.k), [=](OpCase& c, Random& random) {
            Array x = random_array(random, {9, 128}, 3.0f);
            x.as<float>()[3 * 128] = NAN;  // in a padded row: no report
            const Tensor logits = c.input(std::move(x));
            const Tensor rows = c.input(ints({9}, {0, 1, 0, -1, 0, 0, 2, -1, 0}));
            router(c.graph, logits, rows, p.n_groups > 1 ? c.weight(random_array(random, {128})) : Tensor(), p);
        });
    return cases;
}
INSTANTIATE_TEST_SUITE_P(Rows, CpuRows, testing::ValuesIn(row_cases()), case_label);

}  // namespace
}  // namespace ggmlx::test
