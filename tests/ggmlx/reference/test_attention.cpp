#include <numeric>

#include "ggmlx/quant/quantize.h"
#include "ggmlx/reference/convert.h"
#include "ggmlx/reference/exp.h"
#include "support.h"

namespace ggmlx::test {
namespace {

const std::vector<DType> kCacheTypes = {DType::F32, DType::F16, DType::BF16, DType::F8_E4M3, DType::Q8_0};

double cache_value(Array& cache, int64_t block, int64_t head, int64_t row, int64_t d) {
    const Shape& s = cache.shape;
    const int64_t i = (block * s[1] + head) * s[2] + row;
    if (cache.dtype == DType::Q8_0) {
        const RowQ8_0& b = cache.as<RowQ8_0>()[i * ceil_div(s[3], 32) + d / 32];
        return f16_to_f32(b.d) * static_cast<float>(b.q[d % 32]);
    }
    if (cache.dtype == DType::F32) return cache.as<float>()[i * s[3] + d];
    if (cache.dtype == DType::F16) return f16_to_f32(cache.as<uint16_t>()[i * s[3] + d]);
    if (cache.dtype == DType::BF16) return bf16_to_f32(cache.as<uint16_t>()[i * s[3] + d]);
    return f8_e4m3_to_f32(cache.as<uint8_t>()[i * s[3] + d]);
}

/// Several sequences in a cache of small blocks that lie in no order.
struct CachedTokens {
    int64_t n_head = 6, n_head_kv = 2, head_dim = 12, head_dim_v = 7, n_blocks = 16, max_blocks = 5;
    int64_t block_len;
    std::vector<int32_t> blocks = {3, 14, 0, 7, 9, /**/ 1, 2, 15, 4, 5, /**/ 11, 8, 6, 10, 12};
    std::vector<int32_t> lengths = {17, 1, 10};
    std::vector<int32_t> sequence, positions;
    Array k_cache, v_cache, q, sinks;

    CachedTokens(DType dtype, std::vector<int32_t> seq, std::vector<int32_t> pos)
        : block_len(dtype == DType::Q8_0 ? 16 : 4),
          sequence(std::move(seq)),
          positions(std::move(pos)),
          k_cache(dtype, {n_blocks, n_head_kv, block_len, head_dim}),
          v_cache(dtype, {n_blocks, n_head_kv, block_len, head_dim_v}),
          q(DType::F32, {n_tokens(), n_head, head_dim}),
          sinks(DType::F32, {n_head}) {
        Random random(1);
        const auto values = random_floats(random, q.shape.n_elements());
        std::copy(values.begin(), values.end(), q.as<float>());
        for (int64_t h = 0; h < n_head; ++h) sinks.as<float>()[h] = static_cast<float>(h) - 2.0f;
        for (size_t s = 0; s < lengths.size(); ++s) append(random, s);
    }

    int64_t n_tokens() const { return static_cast<int64_t>(sequence.size()); }

    /// Writes keys and values of sequence s through the op.
    void append(Random& random, size_t s) {
        std::vector<int32_t> slots;
        for (int32_t p = 0; p < lengths[s]; ++p) {
            const auto length = static_cast<int32_t>(block_len);
            slots.push_back(blocks[s * static_cast<size_t>(max_blocks) + static_cast<size_t>(p / length)] * length +
                            p % length);
        }
        Array where({lengths[s]}, slots);
        for (Array* cache : {&k_cache, &v_cache}) {
            Array x = random_array(random, {lengths[s], n_head_kv, cache->shape[3]});
            OpRun run(Op::CacheAppend, {}, {cache, &x, &where}, {cache});
            EXPECT_TRUE(run.status.ok());
        }
    }

    std::vector<float> attend(const AttentionParams& params, bool with_sinks) {
        Array table({3, max_blocks}, blocks), seq({n_tokens()}, sequence), pos({n_tokens()}, positions);
        std::vector<Array*> in = {&q, &k_cache, &v_cache, &table, &seq, &pos};
        if (with_sinks) in.push_back(&sinks);
        return run_floats(Op::Attention, params, in, {n_tokens(), n_head * head_dim_v});
    }

    int64_t block_of(int32_t s, int64_t position) const {
        return blocks[static_cast<size_t>(s * max_blocks + position / block_len)];
    }
};

/// One token and head in float64: y and how far float32 may be from it.
void expect_exact(CachedTokens& s, int64_t t, int64_t h, const AttentionParams& params, bool with_sinks,
                  const float* y) {
    const int32_t sequence = s.sequence[static_cast<size_t>(t)], last = s.positions[static_cast<size_t>(t)];
    const int64_t first = params.window > 0 ? std::max(0, last - params.window + 1) : 0,
                  h_kv = h / (s.n_head / s.n_head_kv);
    std::vector<double> score;
    double score_error = 0;
    for (int64_t j = first; j <= last; ++j) {
        double sum = 0, magnitude = 0;
        for (int64_t d = 0; d < s.head_dim; ++d) {
            const double term = s.q.as<float>()[(t * s.n_head + h) * s.head_dim + d] *
                                cache_value(s.k_cache, s.block_of(sequence, j), h_kv, j % s.block_len, d);
            sum += term;
            magnitude += std::fabs(term);
        }
        score.push_back(sum * params.scale);
        score_error = std::max(score_error, (2 + 3 + 1) * kEps * magnitude * params.scale);
    }
    double largest = *std::max_element(score.begin(), score.end());
    if (with_sinks) largest = std::max<double>(largest, s.sinks.as<float>()[h]);
    double denominator = with_sinks ? std::exp(s.sinks.as<float>()[h] - largest) : 0;
    double span = with_sinks ? std::fabs(s.sinks.as<float>()[h] - largest) : 0;
    for (double v : score) {
        denominator += std::exp(v - largest);
        span = std::max(span, largest - v);
    }
    // Each e_j is off by the errors of two scores, their rounded difference and the exponential's 2 roundings; both
    // sums are off by that and by their additions.
    const double one = 2 * score_error + (span + 2) * kEps;
    const double relative = 2 * one + (2 * static_cast<double>(score.size()) + 6) * kEps;
    for (int64_t d = 0; d < s.head_dim_v; ++d) {
        double sum = 0, magnitude = 0;
        for (int64_t j = first; j <= last; ++j) {
            const double p = std::exp(score[static_cast<size_t>(j - first)] - largest) / denominator;
            const double v = cache_value(s.v_cache, s.block_of(sequence, j), h_kv, j % s.block_len, d);
            sum += p * v;
            magnitude += p * std::fabs(v);
        }
        ASSERT_NEAR(y[d], sum, relative * magnitude) << "token " << t << " head " << h << " value " << d;
    }
}

const std::vector<int32_t> kSequence = {0, 0, 2, 1, 2, 0}, kPositions = {16, 3, 9, 0, 4, 0};

TEST(Attention, EqualsTheFloat64One) {
    for (DType dtype : kCacheTypes) {
        for (int32_t window : {0, 1, 5, 100}) {
            for (bool with_sinks : {false, true}) {
                CachedTokens s(dtype, kSequence, kPositions);
                const AttentionParams params{.scale = 0.3f, .window = window};
                const auto y = s.attend(params, with_sinks);
                for (int64_t t = 0; t < s.n_tokens(); ++t)
                    for (int64_t h = 0; h < s.n_head; ++h)
                        expect_exact(s, t, h, params, with_sinks, y.data() + (t * s.n_head + h) * s.head_dim_v);
            }
        }
    }
}

TEST(Attention, ReadsTheBeginningOfKeysAsValues) {
    CachedTokens s(DType::F16, kSequence, kPositions);
    CachedTokens prefix(DType::F16, kSequence, kPositions);
    for (int64_t row = 0; row < s.n_blocks * s.n_head_kv * s.block_len; ++row)
        std::copy_n(s.k_cache.as<uint16_t>() + row * s.head_dim, s.head_dim_v,
                    s.v_cache.as<uint16_t>() + row * s.head_dim_v);
    const auto expected = s.attend({.scale = 0.3f}, true);
    prefix.v_cache = prefix.k_cache;
    EXPECT_EQ(prefix.attend({.scale = 0.3f, .head_dim_v = prefix.head_dim_v}, true), expected);
}

TEST(Attention, GivesPaddedRowsZeroAndOthersTheSameBitsAsAlone) {
    CachedTokens all(DType::F16, kSequence, kPositions);
    const auto y = all.attend({.scale = 0.3f}, true);
    CachedTokens padded(DType::F16, kSequence, kPositions);
    padded.sequence = {-1, 0, -1, -1, 2, -1};
    padded.positions[0] = -1;
    const auto z = padded.attend({.scale = 0.3f}, true);
    const size_t n = static_cast<size_t>(all.n_head * all.head_dim_v);
    for (size_t t = 0; t < 6; ++t)
        for (size_t i = 0; i < n; ++i) EXPECT_EQ(z[t * n + i], padded.sequence[t] < 0 ? 0.0f : y[t * n + i]);
}

TEST(Attention, DoesNotDependOnWhereBlocksLie) {
    CachedTokens a(DType::BF16, kSequence, kPositions);
    CachedTokens b(DType::BF16, kSequence, kPositions);
    const auto turned = [&](int32_t block) { return static_cast<int32_t>(b.n_blocks) - 1 - block; };
    for (Array* cache : {&b.k_cache, &b.v_cache}) {
        const size_t block_bytes = cache->bytes.size() / static_cast<size_t>(b.n_blocks);
        const auto before = cache->bytes;
        for (int32_t i = 0; i < b.n_blocks; ++i)
            std::copy_n(before.begin() + static_cast<int64_t>(block_bytes) * i, block_bytes,
                        cache->bytes.begin() + static_cast<int64_t>(block_bytes) * turned(i));
    }
    for (int32_t& block : b.blocks) block = turned(block);
    EXPECT_EQ(a.attend({.window = 7}, false), b.attend({.window = 7}, false));
}

TEST(Attention, AddsByPositionModEight) {
    // One head of one value; scores differ, so every order of additions has bits of its own.
    const int32_t n = 30, window = 21, first = n - window;
    Random random(2);
    Array q({1, 1, 1}, std::vector<float>{1.0f}), k = random_array(random, {1, 1, n, 1}),
                                                  v = random_array(random, {1, 1, n, 1});
    Array table({1, 1}, std::vector<int32_t>{0}), sequence({1}, std::vector<int32_t>{0}),
        position({1}, std::vector<int32_t>{n - 1});
    Array sink({1}, std::vector<float>{0.25f});
    const auto y = run_floats(Op::Attention, AttentionParams{.scale = 0.7f, .window = window},
                              {&q, &k, &v, &table, &sequence, &position, &sink}, {1, 1});
    float largest = 0.25f, out = 0, p[8] = {};
    for (int j = first; j < n; ++j) largest = std::max(largest, k.as<float>()[j] * 0.7f);
    for (int j = first; j < n; ++j) {
        const float e = exp_poly(k.as<float>()[j] * 0.7f - largest);
        p[j % 8] += e;
        out = std::fma(e, v.as<float>()[j], out);
    }
    const float sum = ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
    EXPECT_EQ(y[0], out / (sum + exp_poly(0.25f - largest)));
}

TEST(Attention, ReportsWhatLiesOutsideTheTables) {
    const auto fault_of = [](auto change) {
        CachedTokens s(DType::F16, {0, 2}, {16, 9});
        change(s);
        Array table({3, s.max_blocks}, s.blocks), seq({2}, s.sequence), pos({2}, s.positions);
        Array y({2, s.n_head * s.head_dim_v},
                std::vector<float>(static_cast<size_t>(2 * s.n_head * s.head_dim_v), NAN));
        OpRun run(Op::Attention, AttentionParams{}, {&s.q, &s.k_cache, &s.v_cache, &table, &seq, &pos}, {&y});
        EXPECT_EQ(run.status.row(), 1);
        EXPECT_EQ(y.floats().back(), 0.0f);
        EXPECT_NE(y.floats().front(), 0.0f);
        return run.status.fault();
    };
    EXPECT_EQ(fault_of([](CachedTokens& s) { s.sequence[1] = 3; }), Fault::BadIndex);
    EXPECT_EQ(fault_of([](CachedTokens& s) { s.sequence[1] = -2; }), Fault::BadIndex);
    EXPECT_EQ(fault_of([](CachedTokens& s) { s.positions[1] = 20; }), Fault::BadIndex);
    EXPECT_EQ(fault_of([](CachedTokens& s) { s.positions[1] = -1; }), Fault::BadIndex);
    EXPECT_EQ(fault_of([](CachedTokens& s) { s.blocks[12] = 16; }), Fault::BadIndex);
    EXPECT_EQ(fault_of([](CachedTokens& s) { s.blocks[10] = -1; }), Fault::BadIndex);
}

TEST(CacheAppend, RoundsToNearestEvenAndLeavesTheRestAlone) {
    Array cache(DType::BF16, {2, 1, 2, 2});
    for (int i = 0; i < 8; ++i) cache.as<uint16_t>()[i] = 7;
    Array x({3, 1, 2}, std::vector<float>{0x1.01p0f, 0x1.03p0f, 5, 6, -2, 1e-40f}),
        slots({3}, std::vector<int32_t>{3, -1, 0});
    OpRun run(Op::CacheAppend, {}, {&cache, &x, &slots}, {&cache});
    EXPECT_TRUE(run.status.ok());
    const std::vector<uint16_t> got(cache.as<uint16_t>(), cache.as<uint16_t>() + 8);
    EXPECT_EQ(got, (std::vector<uint16_t>{0xc000, 1, 7, 7, 7, 7, 0x3f80, 0x3f82}));
}

/// One row of a q8_0 cache and what it holds.
struct BlockRow {
    std::vector<RowQ8_0> blocks;
    std::vector<float> values;

    explicit BlockRow(const std::vector<float>& x) : values(x.size()) {
        const auto n = static_cast<int64_t>(x.size());
        // A cache of 16 rows; the row after ours must stay as it is.
        const auto n_blocks = static_cast<size_t>(ceil_div(n, 32));
        Array cache(DType::Q8_0, {1, 1, 16, n}), in({1, 1, n}, x), slot({1}, std::vector<int32_t>{3});
        for (std::byte& b : cache.bytes) b = std::byte{0x77};
        OpRun run(Op::CacheAppend, {}, {&cache, &in, &slot}, {&cache});
        EXPECT_TRUE(run.status.ok());
        const auto* row = cache.as<RowQ8_0>() + 3 * n_blocks;
        EXPECT_EQ(row[-1].q[31], 0x77);
        EXPECT_EQ(row[n_blocks].d, 0x7777);
        blocks.assign(row, row + n_blocks);
        reference::load_cache_row(DType::Q8_0, reinterpret_cast<const std::byte*>(row), n, values.data());
    }
};

TEST(CacheAppend, GivesQ8RowsTheValuesOfQuantizedWeights) {
    Random random(3);
    for (int64_t n : {1, 31, 32, 33, 80, 576}) {
        for (float deviation :
             {1.0f, 1e-6f, 3e-5f, 1e6f}) {  // also scales that float16 has as subnormals or not at all
            const auto x = random_floats(random, n, deviation);
            std::vector<std::byte> stored(static_cast<size_t>(slice_bytes(DType::Q8_0, {1, n})));
            std::vector<float> weights(x.size());
            quantize_matrix(DType::Q8_0, x.data(), 1, n, stored);
            dequantize_rows(DType::Q8_0, stored, 1, n, 0, 1, weights.data());
            EXPECT_EQ(BlockRow(x).values, weights) << n << " values of about " << deviation;
        }
    }
}

TEST(CacheAppend, RoundsQ8ToNearestAndPadsTheLastBlockWithZeros) {
    std::vector<float> x(34, 0.0f);
    x[0] = 127.0f, x[1] = 2.5f, x[2] = -3.5f, x[3] = 0.49f, x[32] = -254.0f, x[33] = 1.0f;
    const BlockRow row(x);
    ASSERT_EQ(row.blocks.size(), 2u);
    EXPECT_EQ(row.blocks[0].d, 0x3c00);  // 1
    EXPECT_EQ(row.blocks[1].d, 0x4000);  // 2
    EXPECT_EQ(std::vector<int>(row.blocks[0].q, row.blocks[0].q + 4), (std::vector<int>{127, 2, -4, 0}));
    EXPECT_EQ(std::vector<int>(row.blocks[1].q, row.blocks[1].q + 3), (std::vector<int>{-127, 0, 0}));
    EXPECT_TRUE(std::all_of(row.blocks[1].q + 2, row.blocks[1].q + 32, [](int8_t q) { return q == 0; }));
}

TEST(CacheAppend, MakesQ8BlocksWithoutFiniteValuesNaN) {
    for (float bad : {NAN, INFINITY, -INFINITY}) {
        std::vector<float> x(64, 1.0f);
        x[40] = bad;
        const BlockRow row(x);
        for (size_t i = 0; i < 32; ++i) EXPECT_NEAR(row.values[i], 1.0f, 0x1p-11f);
        for (size_t i = 32; i < 64; ++i) EXPECT_TRUE(std::isnan(row.values[i]));
    }
}

TEST(CacheAppend, ReportsSlotsOutsideTheCache) {
    for (int32_t bad : {4, -2, INT32_MAX}) {
        Array cache(DType::F32, {2, 1, 2, 1}), x({2, 1, 1}, std::vector<float>{1, 2}),
            slots({2}, std::vector<int32_t>{3, bad});
        OpRun run(Op::CacheAppend, {}, {&cache, &x, &slots}, {&cache});
        EXPECT_EQ(run.status.fault(), Fault::BadIndex);
        EXPECT_EQ(run.status.row(), 1);
        EXPECT_EQ(cache.floats(), (std::vector<float>{0, 0, 0, 1}));
    }
}

}  // namespace
}  // namespace ggmlx::test
