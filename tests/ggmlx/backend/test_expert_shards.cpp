// Experts dealt out to nodes: every block on one node, the slices in stored form, nodes evenly loaded.

#include <gtest/gtest.h>

#include <random>

#include "ggmlx/backend/expert_shards.h"
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

int64_t extent_of(const ShardedMatrix& m, int shard) {
    return shard_extent(m.axis == ShardAxis::Rows ? m.n_out : m.n_in, shard, m.n_shards);
}

/// Writes the values of a shard to their places in the whole matrix, and counts how often each place is written.
void put_back(const ShardedMatrix& m, int shard, const std::byte* slice, Values& whole, std::vector<int>& count) {
    const int64_t extent = extent_of(m, shard);
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
    std::vector<std::byte> joined(stored.size());
    int64_t bytes = 0;
    for (int shard = 0; shard < m.n_shards; ++shard) {
        std::vector<std::byte> slice(static_cast<size_t>(m.shard_bytes(shard)));
        cut_shard(m, shard, stored.data(), slice.data());
        put_back(m, shard, slice.data(), whole, count);
        join_shard(m, shard, slice.data(), joined.data());
        EXPECT_LE(m.shard_bytes(shard), m.shard_bytes(0));
        bytes += m.shard_bytes(shard);
    }
    EXPECT_EQ(count, std::vector<int>(count.size(), 1));
    EXPECT_EQ(whole, expected);
    EXPECT_EQ(joined, stored);
    EXPECT_EQ(bytes, slice_bytes(m.dtype, {m.n_out, m.n_in}));
}

TEST(ExpertShards, NodesAreReducedToAPowerOfTwo) {
    const std::pair<int, int> cases[] = {{0, 1}, {1, 1}, {2, 2}, {3, 2},  {4, 4},
                                         {6, 4}, {7, 4}, {8, 8}, {12, 8}, {64, 8}};
    for (const auto& [n_nodes, n_shards] : cases) EXPECT_EQ(shard_count(n_nodes), n_shards) << n_nodes;
}

TEST(ExpertShards, ShardsContainEveryBlockExactlyOnce) {
    for (DType dtype : kTypes)
        for (int n_shards : {1, 2, 4, 8})
            for (int64_t n : {256, 320, 1408 / 4, 90, 31})
                for (ShardAxis axis : {ShardAxis::Rows, ShardAxis::Columns}) {
                    const bool rows = axis == ShardAxis::Rows;
                    if (!rows && info(dtype).block_len > kShardBlock) continue;
                    expect_shards_make_the_whole({dtype, rows ? n : 50, rows ? 256 : n, axis, n_shards});
                }
}

TEST(ExpertShards, FewerBlocksThanNodesLeaveNodesEmpty) {
    const ShardedMatrix m{DType::Q8_0, 64, 64, ShardAxis::Rows, 4};
    EXPECT_EQ(extent_of(m, 1), 32);
    EXPECT_EQ(extent_of(m, 2), 0);
    EXPECT_EQ(m.shard_bytes(3), 0);
    expect_shards_make_the_whole(m);
}

TEST(ExpertShards, TwoNodesHoldTheSameToFivePercent) {
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

TEST(ExpertShards, OnlyTilesOf32ValuesKeepPartialSums) {
    for (DType dtype : {DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::MXFP4, DType::MXFP8})
        EXPECT_TRUE(keeps_partial_sums(dtype)) << name(dtype);
    for (DType dtype : {DType::F32, DType::F16, DType::BF16, DType::Q4_K, DType::Q6_K})
        EXPECT_FALSE(keeps_partial_sums(dtype)) << name(dtype);
}

}  // namespace
}  // namespace ggmlx
