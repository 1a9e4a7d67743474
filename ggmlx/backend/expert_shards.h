#pragma once
// Experts dealt out along their intermediate dimension, so that each memory node of a machine holds its part of every
// expert. The dimension is cut into blocks of 32 values; block b belongs to shard b mod n. With n of 2, 4 or 8 a shard
// then holds whole partial sums of the one summation order (block b adds to partial b mod 8), and the result has the
// same bits as with whole experts.
//
// Rows of gate and up, values of their biases and columns of down are blocks of that dimension. Where columns of down
// cannot be dealt out (keeps_partial_sums), its rows and the values of its bias are instead, in blocks of 32 as well:
// every row's sum is then taken by one node, from values of all. A shard is again a matrix in stored form, of its
// blocks in increasing order; only the last block of all may be shorter than 32, and it is the last of its shard too.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ggmlx/core/dtype.h"
#include "ggmlx/core/math.h"

namespace ggmlx {

constexpr int64_t kShardBlock = 32;
constexpr int kMaxShards = 8;

/// The number of shards for so many nodes: the largest of 8, 4, 2, 1 that is not above n_nodes.
int shard_count(int n_nodes);

/// How many of n values a shard has; 0 if there are fewer blocks than shards. None has more than shard 0.
constexpr int64_t shard_extent(int64_t n, int shard, int n_shards) {
    const int64_t n_blocks = ceil_div(n, kShardBlock),
                  own_blocks = ceil_div(std::max<int64_t>(0, n_blocks - shard), n_shards);
    const bool has_last = own_blocks > 0 && (n_blocks - 1) % n_shards == shard;
    return own_blocks * kShardBlock - (has_last ? n_blocks * kShardBlock - n : 0);
}

/// Whether columns of a matrix of this type can be dealt out. In f32, f16 and bf16 a partial sum takes every eighth
/// value, so all of them need every block; values of q4_k and q6_k share scales by 256.
bool keeps_partial_sums(DType dtype);

enum class ShardAxis { Rows, Columns };

/// A matrix [n_out, n_in] that is cut along one axis. Columns of q4_k and q6_k cannot be cut.
struct ShardedMatrix {
    DType dtype = DType::F32;
    int64_t n_out = 0;
    int64_t n_in = 0;
    ShardAxis axis = ShardAxis::Rows;
    int n_shards = 1;

    /// Bytes of a shard in stored form.
    int64_t shard_bytes(int shard) const;
};

/// Copies one shard of a matrix in stored form to dst, which has shard_bytes(shard).
void cut_shard(const ShardedMatrix& matrix, int shard, const std::byte* stored, std::byte* dst);
/// Puts a shard back to its place.
void join_shard(const ShardedMatrix& matrix, int shard, const std::byte* src, std::byte* stored);

}  // namespace ggmlx
