// Experts dealt out to nodes: every block on one node, the slices in stored form, nodes evenly loaded.

#include <gtest/gtest.h>

#include <random>

#include "ggmlx/backend/cpu/numa.h"
#include "ggmlx/backend/cpu/numa_shard.h"
#include "ggmlx/backend/host_memory.h"
#include "ggmlx/core/error.h"
#include "ggmlx/core/math.h"
#include "ggmlx/quant/quantize.h"

namespace ggmlx {
namespace {

using Values = std::vector<float>;

constexpr DType kTypes[] = {DType::F32,  DType::F16,  DType::BF16, DType::Q8_0,  DType::Q4_0,
                            DType::Q4_1, DType::Q4_K, DType::Q6_K, DType::MXFP4, DType::MXFP8};

Values values_of(DType dtype, int64_t n_out, int64_t n_in, const std::byte* stored) {
    Values values(static_cast<size_t>(n_out * n_in));
    const auto size = static_cast<size_t>(slice_bytes(dtype, {n_out, n_in}));
    dequantize_rows(dtype, std::span(stored, size), n_out, n_in, 0, n_out, values.data());
    return values;
}

std::vector<std::byte> random_matrix(DType dtype, int64_t n_out, int64_t n_in, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Values values(static_cast<size_t>(n_out * n_in));
    for (float& v : values) v = normal(random);
    std::vector<std::byte> stored(static_cast<size_t>(slice_bytes(dtype, {n_out, n_in})));
    quantize_matrix(dtype, values.data(), n_out, n_in, stored);
    return stored;
}

/// Writes the values of a shard to their places in the whole matrix, and counts how often each place is written.
void put_back(const ShardedMatrix& m, int shard, const std::byte* slice, Values& whole, std::vector<int>& count) {
    const int64_t extent = m.extent_of(shard);
    if (extent == 0) return;
    const bool by_rows = m.axis == ShardAxis::Rows;
    const int64_t n_out = by_rows ? extent : m.n_out, n_in = by_rows ? m.n_in : extent;
    const Values values = values_of(m.dtype, n_out, n_in, slice);
    const auto place = [&](int64_t i) {
        return (i / kShardBlock * m.n_shards + shard) * kShardBlock + i % kShardBlock;
    };
    for (int64_t r = 0; r < n_out; ++r)
        for (int64_t c = 0; c < n_in; ++c) {
            const int64_t at = by_rows ? place(r) * m.n_in + c : r * m.n_in + place(c);
            whole.at(static_cast<size_t>(at)) = values[static_cast<size_t>(r * n_in + c)];
            ++count.at(static_cast<size_t>(at));
        }
}

void expect_shards_make_the_whole(const ShardedMatrix& m) {
    SCOPED_TRACE(testing::Message() << name(m.dtype) << " [" << m.n_out << ", " << m.n_in << "] by "
                                    << (m.axis == ShardAxis::Rows ? "rows" : "columns") << " over " << m.n_shards);
    const auto stored = random_matrix(m.dtype, m.n_out, m.n_in, 7);
    const Values expected = values_of(m.dtype, m.n_out, m.n_in, stored.data());
    Values whole(expected.size());
    std::vector<int> count(expected.size(), 0);
    int64_t bytes = 0;
    for (int shard = 0; shard < m.n_shards; ++shard) {
        std::vector<std::byte> slice(static_cast<size_t>(m.shard_bytes(shard)));
        cut_shard(m, shard, stored.data(), slice.data());
        put_back(m, shard, slice.data(), whole, count);
        bytes += m.shard_bytes(shard);
    }
    EXPECT_EQ(count, std::vector<int>(count.size(), 1));
    EXPECT_EQ(whole, expected);
    EXPECT_EQ(bytes, slice_bytes(m.dtype, {m.n_out, m.n_in}));
}

TEST(NumaShard, NodesAreReducedToAPowerOfTwo) {
    const std::pair<int, int> cases[] = {{0, 1}, {1, 1}, {2, 2}, {3, 2},  {4, 4},
                                         {6, 4}, {7, 4}, {8, 8}, {12, 8}, {64, 8}};
    for (const auto& [n_nodes, n_shards] : cases) EXPECT_EQ(shard_count(n_nodes), n_shards) << n_nodes;
}

TEST(NumaShard, ShardsContainEveryBlockExactlyOnce) {
    for (DType dtype : kTypes)
        for (int n_shards : {1, 2, 4, 8})
            for (int64_t n : {256, 320, 1408 / 4, 90, 31})
                for (ShardAxis axis : {ShardAxis::Rows, ShardAxis::Columns}) {
                    const bool rows = axis == ShardAxis::Rows;
                    if (!rows && info(dtype).block_len > kShardBlock) continue;
                    expect_shards_make_the_whole({dtype, rows ? n : 50, rows ? 256 : n, axis, n_shards});
                }
}

TEST(NumaShard, FewerBlocksThanNodesLeaveNodesEmpty) {
    const ShardedMatrix m{DType::Q8_0, 64, 64, ShardAxis::Rows, 4};
    EXPECT_EQ(m.extent_of(1), 32);
    EXPECT_EQ(m.extent_of(2), 0);
    EXPECT_EQ(m.shard_bytes(3), 0);
    expect_shards_make_the_whole(m);
}

TEST(NumaShard, TwoNodesHoldTheSameToFivePercent) {
    struct Shape {
        int64_t n_embd, n_ff;
    };
    for (const Shape& s : {Shape{2048, 768}, Shape{2880, 2880}, Shape{2048, 1408}, Shape{4096, 14336}, Shape{64, 320}})
        for (DType dtype : {DType::MXFP4, DType::Q4_0, DType::Q8_0})
            for (const ShardedMatrix& m : {ShardedMatrix{dtype, s.n_ff, s.n_embd, ShardAxis::Rows, 2},
                                           ShardedMatrix{dtype, s.n_embd, s.n_ff, ShardAxis::Columns, 2}}) {
                const auto a = static_cast<double>(m.shard_bytes(0)), b = static_cast<double>(m.shard_bytes(1));
                EXPECT_LT(std::abs(a - b), 0.05 * std::max(a, b)) << s.n_ff;
            }
}

TEST(NumaShard, AStackIsCutExpertByExpert) {
    constexpr int64_t kExperts = 3;
    const ShardedMatrix m{DType::MXFP4, 48, 96, ShardAxis::Columns, 2};
    const int64_t stride = slice_bytes(m.dtype, {m.n_out, m.n_in}) + 128;  // experts may have gaps
    std::vector<std::byte> stored(static_cast<size_t>(kExperts * stride));
    for (int64_t e = 0; e < kExperts; ++e) {
        const auto matrix = random_matrix(m.dtype, m.n_out, m.n_in, static_cast<unsigned>(e));
        std::copy(matrix.begin(), matrix.end(), stored.begin() + e * stride);
    }
    const ShardedStack stack =
        cut_stack(m, kExperts, stored.data(), stride, [](int, size_t size) { return alloc_host("cpu", size); });
    ASSERT_EQ(stack.shards.size(), 2u);
    for (int shard = 0; shard < 2; ++shard) {
        const auto& cut = stack.shards[static_cast<size_t>(shard)];
        EXPECT_EQ(cut.size_bytes, kExperts * cut.stride);
        std::vector<std::byte> slice(static_cast<size_t>(m.shard_bytes(shard)));
        for (int64_t e = 0; e < kExperts; ++e) {
            cut_shard(m, shard, stored.data() + e * stride, slice.data());
            EXPECT_TRUE(std::equal(slice.begin(), slice.end(), cut.data.get() + e * cut.stride)) << shard << " " << e;
        }
    }
}

TEST(NumaShard, ColumnsOfTypesWithLongBlocksAreRefused) {
    const ShardedMatrix m{DType::Q4_K, 16, 512, ShardAxis::Columns, 2};
    try {
        (void)cut_stack(m, 1, nullptr, 0, [](int, size_t size) { return alloc_host("cpu", size); });
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Unsupported);
        EXPECT_NE(std::string(e.what()).find("q4_k"), std::string::npos) << e.what();
    }
}

TEST(NumaShardOnRealNodes, SlicesLieOnTheirNodes) {
    const NumaPlan plan = plan_numa(NumaPolicy::Interleave, "", allowed_cpus(), can_bind_memory());
    if (plan.policy == NumaPolicy::Off) GTEST_SKIP() << "memory cannot be bound here: " << plan.reason;
    const int n_shards = shard_count(static_cast<int>(plan.nodes.size()));
    const ShardedMatrix m{DType::Q8_0, 1408, 512, ShardAxis::Rows, n_shards};
    constexpr int64_t kExperts = 16;
    const int64_t stride = slice_bytes(m.dtype, {m.n_out, m.n_in});
    const std::vector<std::byte> stored(static_cast<size_t>(kExperts * stride), std::byte{1});
    const ShardedStack stack = cut_stack(m, kExperts, stored.data(), stride, memory_on_nodes("cpu", plan.nodes));
    for (size_t shard = 0; shard < stack.shards.size(); ++shard)
        for (int64_t at = 0; at < stack.shards[shard].size_bytes; at += 4096)
            ASSERT_EQ(node_of_page(stack.shards[shard].data.get() + at), plan.nodes[shard]) << at;
}

}  // namespace
}  // namespace ggmlx
