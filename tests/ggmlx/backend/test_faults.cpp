// What a kernel cannot compute is reported as the reference reports it, and the output is the same nevertheless.

#include "ggmlx/backend/cpu_cases.h"
#include "ggmlx/graph/expert_parts.h"
#include "ggmlx/graph/ops.h"

namespace ggmlx::test {
namespace {

class CpuFaults : public testing::TestWithParam<CaseOf> {};

/// As for any case, and there is something to report.
TEST_P(CpuFaults, AreReportedLikeTheReference) {
    expect_reference_bits(GetParam());
    Random random(7);
    OpCase c;
    GetParam().build(c, random);
    EXPECT_NE(c.run_reference_op().fault, Fault::None);
}

ExpertWeights small_experts(OpCase& c, Random& random) {
    return {.gate = c.weight(random_weight(random, DType::Q4_0, {3, 32, 32})),
            .up = c.weight(random_weight(random, DType::Q4_0, {3, 32, 32})),
            .down = c.weight(random_weight(random, DType::Q4_0, {3, 32, 32})),
            .gate_bias = {},
            .up_bias = {},
            .down_bias = {}};
}

AttentionInputs small_attention(OpCase& c, Random& random, int32_t block, int32_t sequence, int32_t position) {
    return {.q = c.input(random_array(random, {2, 2, 8})),
            .k_cache = c.state(random_array(random, {2, 1, 4, 8})),
            .v_cache = c.state(random_array(random, {2, 1, 4, 8})),
            .block_table = c.input(ints({1, 2}, {1, block})),
            .sequence = c.input(ints({2}, {0, sequence})),
            .positions = c.input(ints({2}, {2, position})),
            .sinks = {}};
}

std::vector<CaseOf> fault_cases() {
    std::vector<CaseOf> cases;
    for (float bad : {NAN, INFINITY, -INFINITY})
        cases.push_back({"matmul of " + std::to_string(bad), [=](OpCase& c, Random& random) {
                             Array x = random_array(random, {3, 96});
                             x.as<float>()[96 + 40] = bad;
                             matmul(c.graph, c.weight(random_weight(random, DType::Q8_0, {20, 96})), c.input(x));
                         }});
    for (int32_t id : {-2, 20})
        cases.push_back({"get_rows of " + std::to_string(id), [=](OpCase& c, Random& random) {
                             const Tensor table = c.weight(random_weight(random, DType::F16, {20, 8}));
                             get_rows(c.graph, table, c.input(ints({3}, {4, id, 19})));
                         }});
    cases.push_back({"top_k of NaN", [](OpCase& c, Random& random) {
                         Array x = random_array(random, {3, 16});
                         x.as<float>()[2 * 16 + 15] = NAN;
                         top_k(c.graph, c.input(std::move(x)), 4);
                     }});
    cases.push_back({"router of infinity", [](OpCase& c, Random& random) {
                         Array x = random_array(random, {3, 16});
                         x.as<float>()[2 * 16 + 15] = INFINITY;
                         const Tensor logits = c.input(std::move(x));
                         router(c.graph, logits, c.input(ints({3}, {0, 0, 0})), {}, {.k = 4, .normalize = true});
                     }});
    cases.push_back({"head_matmul of NaN", [](OpCase& c, Random& random) {
                         Array x = random_array(random, {4, 3, 64});
                         x.as<float>()[(2 * 3 + 1) * 64 + 40] = NAN;
                         head_matmul(c.graph, c.weight(random_weight(random, DType::Q8_0, {3, 16, 64})), c.input(x));
                     }});
    for (int32_t slot : {-2, 8})
        cases.push_back({"cache_append to " + std::to_string(slot), [=](OpCase& c, Random& random) {
                             const Tensor cache = c.state(random_array(random, {2, 3, 4, 8}));
                             const Tensor x = c.input(random_array(random, {2, 3, 8}));
                             cache_append(c.graph, cache, x, c.input(ints({2}, {5, slot})));
                         }});
    struct {
        const char* label;
        int32_t block, sequence, position;
    } const bad_attention[] = {{"block -1", -1, 0, 5},    {"block 2", 2, 0, 5},    {"sequence 1", 0, 1, 5},
                               {"sequence -2", 0, -2, 5}, {"position 8", 0, 0, 8}, {"position -1", 0, 0, -1}};
    for (const auto& bad : bad_attention)
        cases.push_back({std::string("attention with ") + bad.label, [=](OpCase& c, Random& random) {
                             attention(c.graph, small_attention(c, random, bad.block, bad.sequence, bad.position), {});
                         }});
    for (int32_t id : {-2, 3})
        cases.push_back({"expert_rows of " + std::to_string(id), [=](OpCase& c, Random& random) {
                             const ExpertWeights w = small_experts(c, random);
                             const Tensor x = c.input(random_array(random, {2, 32}));
                             const Tensor ids = c.input(ints({2, 2}, {0, 2, id, 1}));
                             expert_rows(c.graph, w, x, ids, c.input(ints({3}, {0, 1, 2})), {});
                         }});
    cases.push_back({"expert_rows with slot 3 of 3", [](OpCase& c, Random& random) {
                         const ExpertWeights w = small_experts(c, random);
                         const Tensor x = c.input(random_array(random, {2, 32}));
                         const Tensor ids = c.input(ints({2, 2}, {0, 2, 1, 2}));
                         expert_rows(c.graph, w, x, ids, c.input(ints({3}, {0, 3, 2})), {});
                     }});
    cases.push_back({"expert_rows of NaN", [](OpCase& c, Random& random) {
                         const ExpertWeights w = small_experts(c, random);
                         Array x = random_array(random, {2, 32});
                         x.as<float>()[32 + 3] = NAN;
                         const Tensor input = c.input(std::move(x));
                         const Tensor ids = c.input(ints({2, 2}, {0, 2, -1, 1}));
                         expert_rows(c.graph, w, input, ids, c.input(ints({3}, {0, 1, 2})), {});
                     }});
    cases.push_back({"expert_sum of an expert nobody has", [](OpCase& c, Random& random) {
                         const Tensor weights = c.input(random_array(random, {2, 2}));
                         const Tensor ids = c.input(ints({2, 2}, {0, -1, 0, 1}));
                         const Tensor slots = c.input(ints({2}, {0, -1}));
                         expert_sum(c.graph, weights, ids, {{slots, c.input(random_array(random, {2, 2, 40}))}});
                     }});
    return cases;
}
INSTANTIATE_TEST_SUITE_P(All, CpuFaults, testing::ValuesIn(fault_cases()), case_label);

}  // namespace
}  // namespace ggmlx::test
