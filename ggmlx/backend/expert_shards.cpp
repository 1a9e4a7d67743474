#include "ggmlx/backend/expert_shards.h"

#include <cstring>

namespace ggmlx {
namespace {

/// How the blocks of a stored matrix lie: n_runs stretches of `stride` bytes, in each of which the blocks follow each
/// other, block_bytes apart and the last one perhaps shorter.
struct StoredBlocks {
    int64_t n_runs, stride, block_bytes;
};

StoredBlocks stored_blocks(const ShardedMatrix& m) {
    const DTypeInfo& type = info(m.dtype);
    const int64_t rows_of_run = type.is_block ? kTileRows : 1;
    if (m.axis == ShardAxis::Rows) {
        const int64_t run = slice_bytes(m.dtype, {rows_of_run, m.n_in});
        return {1, slice_bytes(m.dtype, {m.n_out, m.n_in}), kShardBlock / rows_of_run * run};
    }
    return {ceil_div(m.n_out, rows_of_run), slice_bytes(m.dtype, {rows_of_run, m.n_in}),
            slice_bytes(m.dtype, {rows_of_run, kShardBlock})};
}

/// Calls f(offset in the whole, offset in the shard, bytes) for every block of a shard.
template <class F>
void for_blocks_of_shard(const ShardedMatrix& matrix, int shard, F f) {
    const StoredBlocks blocks = stored_blocks(matrix);
    int64_t in_shard = 0;
    for (int64_t run = 0; run < blocks.n_runs; ++run)
        for (int64_t at = shard * blocks.block_bytes; at < blocks.stride; at += matrix.n_shards * blocks.block_bytes) {
            const int64_t size = std::min(blocks.block_bytes, blocks.stride - at);
            f(run * blocks.stride + at, in_shard, static_cast<size_t>(size));
            in_shard += size;
        }
}

}  // namespace

int shard_count(int n_nodes) {
    int n = 1;
    while (n < kMaxShards && 2 * n <= n_nodes) n *= 2;
    return n;
}

bool keeps_partial_sums(DType dtype) { return info(dtype).is_block && info(dtype).block_len == kShardBlock; }

int64_t ShardedMatrix::shard_bytes(int shard) const {
    const bool by_rows = axis == ShardAxis::Rows;
    const int64_t extent = shard_extent(by_rows ? n_out : n_in, shard, n_shards);
    if (extent == 0) return 0;
    return by_rows ? slice_bytes(dtype, {extent, n_in}) : slice_bytes(dtype, {n_out, extent});
}

void cut_shard(const ShardedMatrix& matrix, int shard, const std::byte* stored, std::byte* dst) {
    for_blocks_of_shard(matrix, shard,
                        [&](int64_t whole, int64_t own, size_t size) { std::memcpy(dst + own, stored + whole, size); });
}

void join_shard(const ShardedMatrix& matrix, int shard, const std::byte* src, std::byte* stored) {
    for_blocks_of_shard(matrix, shard,
                        [&](int64_t whole, int64_t own, size_t size) { std::memcpy(stored + whole, src + own, size); });
}

}  // namespace ggmlx
