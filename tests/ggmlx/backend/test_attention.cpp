// Rotary positions, caches and attention.

#include <bit>
#include <numeric>

#include "ggmlx/backend/cpu_cases.h"
#include "ggmlx/graph/ops.h"
#include "ggmlx/reference/convert.h"

namespace ggmlx::test {
namespace {

class CpuAttention : public testing::TestWithParam<CaseOf> {};

TEST_P(CpuAttention, GivesTheBitsOfTheReference) { expect_reference_bits(GetParam()); }
GGMLX_ON_CUDA(CpuAttention)

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

const std::vector<DType> kCacheTypes = {DType::F32, DType::F16, DType::BF16, DType::F8_E4M3, DType::Q8_0};

/// A cache of random values without NaN or infinity.
Array random_cache(Random& random, DType dtype, const Shape& shape) {
    Array cache(dtype, shape);
    const int64_t n_rows = shape[0] * shape[1] * shape[2], row_bytes = cache_row_bytes(dtype, shape[3]);
    for (int64_t row = 0; row < n_rows; ++row)
        reference::store_cache_row(dtype, random_floats(random, shape[3]).data(), shape[3],
                                   cache.bytes.data() + row * row_bytes);
    return cache;
}

/// Where the tokens of a batch are.
enum class Batch {
    Scattered,  ///< anywhere in either sequence, padding among them
    Prompts,    ///< one after the other at the end of either sequence, padding behind them
};

struct AttentionSize {
    int64_t n_tokens, n_head, n_head_kv, head_dim, head_dim_v;
    int32_t window = 0;
    bool sinks = false;
    bool values_in_keys = false;  ///< head_dim_v values at the beginning of the keys
    Batch batch = Batch::Scattered;
    int64_t block_len = 16;
};

void build_attention(OpCase& c, Random& random, DType k_type, DType v_type, const AttentionSize& s) {
    const int64_t n_blocks = 12, n_sequences = 2, max_blocks = 6, n_positions = max_blocks * s.block_len;
    std::vector<int32_t> table(static_cast<size_t>(n_blocks)), sequence, positions;
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), random);
    const int64_t half = s.n_tokens / 2, padding = s.n_tokens / 8;
    for (int64_t t = 0; t < s.n_tokens; ++t) {
        if (s.batch == Batch::Prompts) {
            sequence.push_back(t < half ? 0 : t < s.n_tokens - padding ? 1 : -1);
            positions.push_back(static_cast<int32_t>(t < half ? n_positions - half + t : n_positions / 2 - half + t));
        } else {
            sequence.push_back(t % 5 == 3 ? -1 : static_cast<int32_t>(random() % 2));
            positions.push_back(static_cast<int32_t>(t == 0 ? n_positions - 1 : random() % n_positions));
        }
    }
    AttentionInputs in{
        .q = c.input(random_array(random, {s.n_tokens, s.n_head, s.head_dim})),
        .k_cache = c.state(random_cache(random, k_type, {n_blocks, s.n_head_kv, s.block_len, s.head_dim})),
        .v_cache = c.state(random_cache(random, v_type, {n_blocks, s.n_head_kv, s.block_len, s.head_dim_v})),
        .block_table = c.input({{n_sequences, max_blocks}, table}),
        .sequence = c.input({{s.n_tokens}, sequence}),
        .positions = c.input({{s.n_tokens}, positions}),
        .sinks = s.sinks ? c.weight(random_array(random, {s.n_head})) : Tensor{},
    };
    if (s.values_in_keys) in.v_cache = in.k_cache;
    attention(c.graph, in, {.scale = 0.3f, .window = s.window, .head_dim_v = s.values_in_keys ? s.head_dim_v : 0});
}

/// Floats at which conversions have something to decide, then any bits at all.
std::vector<float> awkward_floats(Random& random, int64_t n) {
    std::vector<float> x = {0.0f,       -0.0f,      INFINITY,   -INFINITY,  NAN,          65504.0f,    65519.0f,
                            65520.0f,   0x1p-24f,   0x1p-25f,   0x1.8p-25f, 0x1.ffcp-15f, 448.0f,      464.0f,
                            465.0f,     -0x1p-10f,  0x1.8p-10f, 0x1.ep-7f,  1e-40f,       3e38f,       0x1.008p0f,
                            0x1.018p0f, 0x1.002p0f, 0x1.006p0f, -0x1.1p0f,  0x1.3p0f,     0x1.fep127f, 0x1.ffp127f};
    while (static_cast<int64_t>(x.size()) < n) x.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    return x;
}

void build_append(OpCase& c, Random& random, DType dtype, int64_t head_dim) {
    const Tensor cache = c.state(random_cache(random, dtype, {3, 2, 16, head_dim}));
    Array x = random_array(random, {4, 2, head_dim}, 30.0f);
    const auto awkward = awkward_floats(random, head_dim);
    std::copy_n(awkward.begin(), head_dim, x.as<float>());
    cache_append(c.graph, cache, c.input(std::move(x)), c.input(ints({4}, {47, -1, 0, 22})));
}

std::vector<CaseOf> attention_cases() {
    // Groups of 1, 2, 3, 7 and more than sixteen heads; dims short of a vector or a block of 32; one token and enough
    // to fill all threads; sequences longer than what is claimed at once.
    const std::vector<AttentionSize> sizes = {{1, 1, 1, 4, 4},
                                              {1, 2, 1, 64, 64, 0, true},
                                              {13, 3, 1, 20, 36},
                                              {9, 14, 2, 72, 64, 7},
                                              {1, 20, 1, 40, 100, 0, true},
                                              {6, 4, 4, 128, 128, 33, true},
                                              {33, 4, 2, 16, 8, 1},
                                              {1, 20, 1, 72, 64, 0, false, true},
                                              {5, 5, 1, 40, 33, 0, true, true},
                                              {1, 8, 2, 128, 128, 0, false, false, Batch::Scattered, 128},
                                              {2, 6, 2, 80, 80, 300, true, false, Batch::Scattered, 128},
                                              {40, 8, 2, 64, 64, 0, false, false, Batch::Prompts},
                                              {67, 4, 4, 80, 80, 21, true, false, Batch::Prompts},
                                              {21, 6, 2, 64, 64, 140, true, false, Batch::Prompts, 48},
                                              {1, 40, 1, 576, 512, 0, false, true},
                                              {11, 20, 1, 576, 512, 0, false, true, Batch::Prompts}};
    std::vector<CaseOf> cases;
    for (DType dtype : kCacheTypes) {
        for (size_t i = 0; i < sizes.size(); ++i)
            cases.push_back({"attention " + std::string(name(dtype)) + " size " + std::to_string(i),
                             [=](OpCase& c, Random& random) { build_attention(c, random, dtype, dtype, sizes[i]); }});
        for (int64_t head_dim : {33, 96, 1000})
            cases.push_back({"cache_append " + std::string(name(dtype)) + " of " + std::to_string(head_dim),
                             [=](OpCase& c, Random& random) { build_append(c, random, dtype, head_dim); }});
    }
    const std::pair<DType, DType> pairs[] = {
        {DType::F16, DType::F8_E4M3}, {DType::Q8_0, DType::F16}, {DType::F32, DType::Q8_0}};
    for (const auto& [k, v] : pairs)
        cases.push_back({"attention " + std::string(name(k)) + " keys and " + std::string(name(v)) + " values",
                         [k = k, v = v](OpCase& c, Random& random) {
                             build_attention(c, random, k, v, {5, 4, 2, 24, 16});
                         }});
    return cases;
}

TEST(CpuAttention, GivesTheBitsOfTheReferenceWhateverTheNumberOfThreads) {
    // More threads than KV heads, than heads and than blocks: units are cut by position, query and dimension.
    const std::vector<AttentionSize> sizes = {{1, 8, 2, 64, 64, 0, false, false, Batch::Scattered, 128},
                                              {3, 1, 1, 40, 100, 0, true},
                                              {1, 72, 1, 192, 160, 0, false, true},
                                              {30, 8, 2, 64, 80, 9, true, false, Batch::Prompts}};
    for (const AttentionSize& size : sizes) {
        Random random(8);
        OpCase c;
        build_attention(c, random, DType::Q8_0, DType::Q8_0, size);
        const OpCase::Result expected = c.run_reference_op();
        for (int n_threads : {4, 7, 16})
            for (const CpuKernels* kernels : supported_kernels()) {
                const auto backend = make_cpu_backend({.n_threads = n_threads, .isa = kernels->name});
                expect_same(expected, c.run_on(*backend), backend->description());
            }
    }
}
INSTANTIATE_TEST_SUITE_P(Attention, CpuAttention, testing::ValuesIn(attention_cases()), case_label);

}  // namespace
}  // namespace ggmlx::test
