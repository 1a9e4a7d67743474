// The mixture, whole and in the parts a plan makes of it.

#include <numeric>

#include "ggmlx/backend/cpu_cases.h"
#include "ggmlx/graph/expert_parts.h"
#include "ggmlx/graph/ops.h"

namespace ggmlx::test {
namespace {

class CpuExperts : public testing::TestWithParam<CaseOf> {};

TEST_P(CpuExperts, GivesTheBitsOfTheReference) { expect_reference_bits(GetParam()); }
GGMLX_ON_CUDA(CpuExperts)

struct ExpertsSize {
    int64_t n_expert, n_embd, n_ff, n_tokens, k;
};

/// Ids without repeats in a row, some of them -1; expert n_expert - 1 is chosen by nobody.
Array random_ids(Random& random, const ExpertsSize& s) {
    std::vector<int32_t> order(static_cast<size_t>(s.n_expert - 1)), ids;
    std::iota(order.begin(), order.end(), 0);
    for (int64_t t = 0; t < s.n_tokens; ++t) {
        std::shuffle(order.begin(), order.end(), random);
        for (int64_t i = 0; i < s.k; ++i) ids.push_back(random() % 9 == 0 ? -1 : order[static_cast<size_t>(i)]);
    }
    return {{s.n_tokens, s.k}, ids};
}

/// Slots in another order than the experts; every third expert is elsewhere.
Array random_slots(Random& random, int64_t n_expert) {
    std::vector<int32_t> slots(static_cast<size_t>(n_expert));
    std::iota(slots.begin(), slots.end(), 0);
    std::shuffle(slots.begin(), slots.end(), random);
    for (size_t e = 0; e < slots.size(); e += 3) slots[e] = -1;
    return {{n_expert}, slots};
}

Array random_bias(Random& random, int64_t n_expert, int64_t n) {
    Array bias = random_array(random, {n_expert, n});
    bias.slot_stride = n * static_cast<int64_t>(sizeof(float));
    return bias;
}

ExpertWeights random_experts(OpCase& c, Random& random, const ExpertsSize& s, DType gate, DType up, DType down,
                             bool has_bias) {
    ExpertWeights w{.gate = c.weight(random_weight(random, gate, {s.n_expert, s.n_ff, s.n_embd})),
                    .up = c.weight(random_weight(random, up, {s.n_expert, s.n_ff, s.n_embd})),
                    .down = c.weight(random_weight(random, down, {s.n_expert, s.n_embd, s.n_ff})),
                    .gate_bias = {},
                    .up_bias = {},
                    .down_bias = {}};
    if (has_bias) {
        w.gate_bias = c.weight(random_bias(random, s.n_expert, s.n_ff));
        w.up_bias = c.weight(random_bias(random, s.n_expert, s.n_ff));
        w.down_bias = c.weight(random_bias(random, s.n_expert, s.n_embd));
    }
    return w;
}

constexpr SwiGLUParams kClamped{.alpha = 1.702f, .clamp = 2.0f, .up_offset = 1.0f};

std::vector<CaseOf> whole_cases() {
    std::vector<CaseOf> cases;
    const std::vector<ExpertsSize> sizes32 = {{3, 64, 32, 1, 1}, {5, 100, 172, 4, 2}, {4, 64, 80, 33, 3}};
    const std::vector<ExpertsSize> sizes256 = {{3, 256, 256, 1, 1}, {5, 256, 512, 7, 2}};
    for (DType dtype : kWeightTypes) {
        for (const ExpertsSize& s : info(dtype).block_len == 256 ? sizes256 : sizes32) {
            const std::string label = std::string(name(dtype)) + " tokens " + std::to_string(s.n_tokens);
            cases.push_back({"experts " + label, [=](OpCase& c, Random& random) {
                                 const ExpertWeights w = random_experts(c, random, s, dtype, dtype, dtype, false);
                                 const Tensor x = c.input(random_array(random, {s.n_tokens, s.n_embd}));
                                 const Tensor ids = c.input(random_ids(random, s));
                                 experts(c.graph, w, x, ids, c.input(random_array(random, {s.n_tokens, s.k})));
                             }});
            cases.push_back({"expert_rows " + label, [=](OpCase& c, Random& random) {
                                 const ExpertWeights w = random_experts(c, random, s, dtype, dtype, dtype, true);
                                 const Tensor x = c.input(random_array(random, {s.n_tokens, s.n_embd}));
                                 const Tensor ids = c.input(random_ids(random, s));
                                 expert_rows(c.graph, w, x, ids, c.input(random_slots(random, s.n_expert)), kClamped);
                             }});
            for (bool row_per_slot : {false, true})
                cases.push_back(
                    {"expert_matmul " + label + (row_per_slot ? " per slot" : ""), [=](OpCase& c, Random& random) {
                         const Tensor w = c.weight(random_weight(random, dtype, {s.n_expert, s.n_ff, s.n_embd}));
                         const Shape shape =
                             row_per_slot ? Shape{s.n_tokens, s.k, s.n_embd} : Shape{s.n_tokens, s.n_embd};
                         const Tensor x = c.input(random_array(random, shape));
                         const Tensor ids = c.input(random_ids(random, s));
                         const Tensor slots = c.input(random_slots(random, s.n_expert));
                         const Tensor bias = c.weight(random_bias(random, s.n_expert, s.n_ff));
                         expert_matmul(c.graph, w, row_per_slot ? bias : Tensor{}, x, ids, slots);
                     }});
        }
    }
    return cases;
}
INSTANTIATE_TEST_SUITE_P(Types, CpuExperts, testing::ValuesIn(whole_cases()), case_label);

/// Every token chooses the same experts; experts in turn, so that each is used as evenly as can be; one expert twice in
/// each row; expert 2 by the last token alone.
enum class Routing { Same, InTurn, Twice, LastAlone };
Array routed_ids(Routing routing, int64_t n_tokens, int64_t k, int64_t n_expert) {
    std::vector<int32_t> ids;
    for (int64_t t = 0; t < n_tokens; ++t)
        for (int64_t i = 0; i < k; ++i) {
            const int64_t in_turn = (t * k + i) % n_expert;
            const bool last = t == n_tokens - 1;
            ids.push_back(static_cast<int32_t>(routing == Routing::Same     ? i
                                               : routing == Routing::InTurn ? in_turn
                                               : routing == Routing::Twice  ? t % n_expert
                                                                            : (last ? 2 : i)));
        }
    return {{n_tokens, k}, ids};
}

std::vector<CaseOf> routing_cases() {
    std::vector<CaseOf> cases;
    const std::pair<Routing, const char*> routings[] = {{Routing::Same, "same"},
                                                        {Routing::InTurn, "in turn"},
                                                        {Routing::Twice, "twice"},
                                                        {Routing::LastAlone, "last alone"}};
    for (DType dtype : kWeightTypes)
        for (int64_t n_tokens : {1, 2, 3, 4, 8, 17, 64, 513})
            for (const auto& [routing, routing_name] : routings) {
                if (n_tokens == 513 && routing != Routing::InTurn) continue;  // the reference takes its time
                const bool wide = info(dtype).block_len == 256;
                const ExpertsSize s{6, wide ? 256 : 36, wide ? 256 : 40, n_tokens, 2};
                cases.push_back({std::string(name(dtype)) + " tokens " + std::to_string(n_tokens) + " " + routing_name,
                                 [s, dtype, which = routing](OpCase& c, Random& random) {
                                     const ExpertWeights w = random_experts(c, random, s, dtype, dtype, dtype, false);
                                     const Tensor x = c.input(random_array(random, {s.n_tokens, s.n_embd}));
                                     const Tensor ids = c.input(routed_ids(which, s.n_tokens, s.k, s.n_expert));
                                     experts(c.graph, w, x, ids, c.input(random_array(random, {s.n_tokens, s.k})));
                                 }});
            }
    return cases;
}
INSTANTIATE_TEST_SUITE_P(Routing, CpuExperts, testing::ValuesIn(routing_cases()), case_label);

/// Gate, up and down of types that read their activations in different forms.
std::vector<CaseOf> mixed_cases() {
    std::vector<CaseOf> cases;
    const DType mixes[][3] = {{DType::MXFP4, DType::MXFP4, DType::Q8_0},
                              {DType::Q4_0, DType::MXFP8, DType::F16},
                              {DType::MXFP8, DType::Q8_0, DType::MXFP8},
                              {DType::F32, DType::Q4_1, DType::MXFP4}};
    for (const auto& mix : mixes)
        cases.push_back(
            {"mix " + std::string(name(mix[0])) + " " + std::string(name(mix[1])) + " " + std::string(name(mix[2])),
             [gate = mix[0], up = mix[1], down = mix[2]](OpCase& c, Random& random) {
                 const ExpertsSize s{4, 68, 84, 6, 2};
                 const ExpertWeights w = random_experts(c, random, s, gate, up, down, false);
                 const Tensor x = c.input(random_array(random, {s.n_tokens, s.n_embd}));
                 const Tensor ids = c.input(random_ids(random, s));
                 expert_rows(c.graph, w, x, ids, c.input(random_slots(random, s.n_expert)), {});
             }});
    return cases;
}
INSTANTIATE_TEST_SUITE_P(Mixed, CpuExperts, testing::ValuesIn(mixed_cases()), case_label);

/// Two devices' rows; experts 0 … 4 on the first, 3 … 7 on the second: the first one's rows win.
std::vector<DeviceRows> two_devices(OpCase& c, Random& random, const ExpertsSize& s) {
    std::vector<DeviceRows> parts;
    for (int32_t device = 0; device < 2; ++device) {
        std::vector<int32_t> slots;
        for (int32_t e = 0; e < 8; ++e) slots.push_back(device == 0 ? (e < 5 ? e : -1) : e - 3);
        const Tensor table = c.input(ints({8}, slots));
        parts.push_back({table, c.input(random_array(random, {s.n_tokens, s.k, s.n_embd}))});
    }
    return parts;
}

std::vector<CaseOf> join_cases() {
    std::vector<CaseOf> cases;
    for (const ExpertsSize& s : {ExpertsSize{9, 100, 0, 1, 3}, ExpertsSize{9, 2500, 0, 5, 4}}) {
        const std::string label = " tokens " + std::to_string(s.n_tokens);
        cases.push_back({"expert_select" + label, [=](OpCase& c, Random& random) {
                             const Tensor ids = c.input(random_ids(random, s));
                             expert_select(c.graph, ids, two_devices(c, random, s));
                         }});
        cases.push_back({"expert_sum" + label, [=](OpCase& c, Random& random) {
                             const Tensor weights = c.input(random_array(random, {s.n_tokens, s.k}));
                             const Tensor ids = c.input(random_ids(random, s));
                             expert_sum(c.graph, weights, ids, two_devices(c, random, s));
                         }});
    }
    return cases;
}
INSTANTIATE_TEST_SUITE_P(Join, CpuExperts, testing::ValuesIn(join_cases()), case_label);

TEST(CpuExpertsEdges, NobodyChoseAnyExpert) {
    expect_reference_bits({"nobody", [](OpCase& c, Random& random) {
                               const ExpertsSize s{3, 64, 32, 2, 2};
                               const ExpertWeights w =
                                   random_experts(c, random, s, DType::MXFP4, DType::MXFP4, DType::MXFP4, false);
                               Array x = random_array(random, {2, 64});
                               x.as<float>()[5] = NAN;  // never read, so never reported
                               const Tensor input = c.input(std::move(x));
                               const Tensor ids = c.input(ints({2, 2}, {-1, 1, 1, -1}));
                               expert_rows(c.graph, w, input, ids, c.input(ints({3}, {0, -1, 1})), {});
                           }});
}

}  // namespace
}  // namespace ggmlx::test
