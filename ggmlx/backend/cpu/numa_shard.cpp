#include "ggmlx/backend/cpu/numa_shard.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "ggmlx/backend/cpu/numa.h"
#include "ggmlx/backend/host_memory.h"
#include "ggmlx/core/error.h"
#include "ggmlx/core/math.h"
#include "ggmlx/core/parallel.h"

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

}  // namespace

int shard_count(int n_nodes) {
    int n = 1;
    while (n < 8 && 2 * n <= n_nodes) n *= 2;
    return n;
}

int64_t ShardedMatrix::extent_of(int shard) const {
    const int64_t n = axis == ShardAxis::Rows ? n_out : n_in;
    const int64_t n_blocks = ceil_div(n, kShardBlock);
    if (n_blocks <= shard) return 0;
    const int64_t own_blocks = ceil_div(n_blocks - shard, n_shards);
    const bool has_last = shard_of_block(n_blocks - 1, n_shards) == shard;
    return own_blocks * kShardBlock - (has_last ? n_blocks * kShardBlock - n : 0);
}

int64_t ShardedMatrix::shard_bytes(int shard) const {
    const int64_t extent = extent_of(shard);
    if (extent == 0) return 0;
    return axis == ShardAxis::Rows ? slice_bytes(dtype, {extent, n_in}) : slice_bytes(dtype, {n_out, extent});
}

void cut_shard(const ShardedMatrix& matrix, int shard, const std::byte* stored, std::byte* dst) {
    const StoredBlocks blocks = stored_blocks(matrix);
    const int64_t step = matrix.n_shards * blocks.block_bytes;
    for (int64_t run = 0; run < blocks.n_runs; ++run, stored += blocks.stride)
        for (int64_t at = shard * blocks.block_bytes; at < blocks.stride; at += step) {
            const int64_t n = std::min(blocks.block_bytes, blocks.stride - at);
            std::memcpy(dst, stored + at, static_cast<size_t>(n));
            dst += n;
        }
}

ShardMemory memory_on_nodes(std::string_view device, std::vector<int> nodes) {
    return [device = std::string(device), nodes = std::move(nodes)](int shard, size_t size_bytes) {
        auto memory = alloc_host(device, size_bytes);
        (void)bind_memory(memory.get(), size_bytes, nodes[static_cast<size_t>(shard)]);
        return memory;
    };
}

ShardedStack cut_stack(const ShardedMatrix& matrix, int64_t n_expert, const std::byte* stored, int64_t expert_stride,
                       const ShardMemory& memory) {
    require(matrix.can_be_cut(), ErrorKind::Unsupported,
            "a matrix of type {} cannot be cut by columns of {}: its values share scales by {}", name(matrix.dtype),
            kShardBlock, info(matrix.dtype).block_len);
    ShardedStack stack;
    for (int shard = 0; shard < matrix.n_shards; ++shard) {
        const int64_t stride = round_up(matrix.shard_bytes(shard), 64);
        const int64_t size = n_expert * stride;
        stack.shards.push_back({memory(shard, static_cast<size_t>(size)), stride, size});
    }
    parallel_for(n_expert * matrix.n_shards, 0, [&](int64_t i) {
        const int64_t expert = i / matrix.n_shards;
        const auto shard = static_cast<int>(i % matrix.n_shards);
        const ShardedStack::Shard& to = stack.shards[static_cast<size_t>(shard)];
        cut_shard(matrix, shard, stored + expert * expert_stride, to.data.get() + expert * to.stride);
    });
    return stack;
}

}  // namespace ggmlx
