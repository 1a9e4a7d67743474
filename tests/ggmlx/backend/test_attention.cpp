// Rotary positions, caches and attention.

#include <numeric>

#include "ggmlx/backend/cpu_cases.h"
#include "ggmlx/graph/ops.h"

namespace ggmlx::test {
namespace {

class CpuAttention : public testing::TestWithParam<CaseOf> {};

TEST_P(CpuAttention, GivesTheBitsOfTheReference) { expect_reference_bits(GetParam()); }

std::vector<CaseOf> rope_cases() {
    std::vector<CaseOf> cases;
    cases.push_back({"rope_table", [](OpCase& c, Random&) {
                         RopeTableParams params{.inv_freq = {1.0f, 0.1f, 0.012345f}, .magnitude = 1.1f};
                         rope_table(c.graph, c.input(ints({5}, {0, 1, 17, 4095, 100000})), params);
                     }});
    for (bool interleaved : {false, true})
        for (bool inverse : {false, true})
            cases.push_back({std::string("rope") + (interleaved ? " interleaved" : "") + (inverse ? " inverse" : ""),
                             [=](OpCase& c, Random& random) {
                                 const Tensor x = c.input(random_array(random, {3, 5, 20}));
                                 const Tensor table = c.input(random_array(random, {3, 7, 2}));
                                 rope(c.graph, x, table, {.first = 4, .interleaved = interleaved, .inverse = inverse});
                             }});
    return cases;
}
INSTANTIATE_TEST_SUITE_P(Rope, CpuAttention, testing::ValuesIn(rope_cases()), case_label);

const std::vector<DType> kCacheTypes = {DType::F32, DType::F16, DType::BF16, DType::F8_E4M3};

/// A cache of random values without NaN or infinity.
Array random_cache(Random& random, DType dtype, const Shape& shape) {
    Array cache(dtype, shape);
    for (int64_t i = 0; i < shape.n_elements(); ++i) {
        const float v = random_floats(random, 1)[0];
        if (dtype == DType::F32) cache.as<float>()[i] = v;
        if (dtype == DType::F16) cache.as<uint16_t>()[i] = f32_to_f16(v);
        if (dtype == DType::BF16) cache.as<uint16_t>()[i] = f32_to_bf16(v);
        if (dtype == DType::F8_E4M3) cache.as<uint8_t>()[i] = f32_to_f8_e4m3(v);
    }
    return cache;
}

struct AttentionSize {
    int64_t n_tokens, n_head, n_head_kv, head_dim, head_dim_v;
    int32_t window = 0;
    bool sinks = false;
    bool values_in_keys = false;  ///< head_dim_v values at the beginning of the keys
};

void build_attention(OpCase& c, Random& random, DType k_type, DType v_type, const AttentionSize& s) {
    const int64_t n_blocks = 12, block_len = 16, n_sequences = 2, max_blocks = 6;
    std::vector<int32_t> table(static_cast<size_t>(n_blocks)), sequence, positions;
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), random);
    for (int64_t t = 0; t < s.n_tokens; ++t) {
        sequence.push_back(t % 5 == 3 ? -1 : static_cast<int32_t>(random() % 2));
        positions.push_back(static_cast<int32_t>(t == 0 ? max_blocks * block_len - 1 : random() % 96));
    }
    AttentionInputs in{
        .q = c.input(random_array(random, {s.n_tokens, s.n_head, s.head_dim})),
        .k_cache = c.state(random_cache(random, k_type, {n_blocks, s.n_head_kv, block_len, s.head_dim})),
        .v_cache = c.state(random_cache(random, v_type, {n_blocks, s.n_head_kv, block_len, s.head_dim_v})),
        .block_table = c.input({{n_sequences, max_blocks}, table}),
        .sequence = c.input({{s.n_tokens}, sequence}),
        .positions = c.input({{s.n_tokens}, positions}),
        .sinks = s.sinks ? c.weight(random_array(random, {s.n_head})) : Tensor{},
    };
    if (s.values_in_keys) in.v_cache = in.k_cache;
    attention(c.graph, in, {.scale = 0.3f, .window = s.window, .head_dim_v = s.values_in_keys ? s.head_dim_v : 0});
}

std::vector<CaseOf> attention_cases() {
    // Groups of 1, 2, 3, 7 and more than eight heads; dims short of a vector; one token and enough to fill all threads.
    const std::vector<AttentionSize> sizes = {
        {1, 1, 1, 4, 4},       {1, 2, 1, 64, 64, 0, true},         {13, 3, 1, 20, 36},
        {9, 14, 2, 72, 64, 7}, {1, 20, 1, 40, 100, 0, true},       {6, 4, 4, 128, 128, 33, true},
        {33, 4, 2, 16, 8, 1},  {1, 20, 1, 72, 64, 0, false, true}, {5, 5, 1, 40, 33, 0, true, true}};
    std::vector<CaseOf> cases;
    for (DType dtype : kCacheTypes) {
        for (size_t i = 0; i < sizes.size(); ++i)
            cases.push_back({"attention " + std::string(name(dtype)) + " size " + std::to_string(i),
                             [=](OpCase& c, Random& random) { build_attention(c, random, dtype, dtype, sizes[i]); }});
        cases.push_back({"cache_append " + std::string(name(dtype)), [=](OpCase& c, Random& random) {
                             const Tensor cache = c.state(random_cache(random, dtype, {3, 2, 4, 33}));
                             Array x = random_array(random, {4, 2, 33}, 30.0f);
                             x.as<float>()[0] = 1e-6f;  // subnormal in the small formats
                             x.as<float>()[1] = 1e6f;   // beyond them
                             const Tensor slots = c.input(ints({4}, {11, -1, 0, 6}));
                             cache_append(c.graph, cache, c.input(std::move(x)), slots);
                         }});
    }
    cases.push_back({"attention f16 keys and f8 values", [=](OpCase& c, Random& random) {
                         build_attention(c, random, DType::F16, DType::F8_E4M3, {5, 4, 2, 24, 16});
                     }});
    return cases;
}
INSTANTIATE_TEST_SUITE_P(Attention, CpuAttention, testing::ValuesIn(attention_cases()), case_label);

}  // namespace
}  // namespace ggmlx::test
