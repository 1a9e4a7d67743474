#pragma once
// Experts dealt out to memory nodes along their intermediate dimension, so that every node reads its part of every
// expert from its own memory. The dimension is cut into blocks of 32 values; block b belongs to node b mod n. With n of
// 1, 2, 4 or 8 a node then holds whole partial sums of the one summation order (block b adds to partial b mod 8), and
// the result has the same bits as on one node.
//
// Rows of gate and up and columns of down are blocks of that dimension. A slice is again a matrix in stored form, of
// the blocks of its node in increasing order; only the last block of all may be shorter than 32, and it is the last of
// its slice too.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ggmlx/core/dtype.h"

namespace ggmlx {

constexpr int64_t kShardBlock = 32;

/// The number of nodes that take part: the largest of 8, 4, 2, 1 that is not above n_nodes.
int shard_count(int n_nodes);
/// The node, counted from 0, of a block of 32 values.
constexpr int shard_of_block(int64_t block, int n_shards) { return static_cast<int>(block % n_shards); }

enum class ShardAxis { Rows, Columns };

/// A matrix [n_out, n_in] that is cut along one axis.
struct ShardedMatrix {
    DType dtype = DType::F32;
    int64_t n_out = 0;
    int64_t n_in = 0;
    ShardAxis axis = ShardAxis::Rows;
    int n_shards = 1;

    /// Whether its stored form can be cut: columns of q4_k and q6_k cannot, whose values share scales by 256.
    bool can_be_cut() const { return axis == ShardAxis::Rows || info(dtype).block_len <= kShardBlock; }
    /// Rows or columns of a shard; 0 if there are fewer blocks than shards.
    int64_t extent_of(int shard) const;
    /// Bytes of a shard in stored form.
    int64_t shard_bytes(int shard) const;
};

/// Writes one shard of a matrix in stored form to dst, which has shard_bytes(shard). matrix.can_be_cut().
void cut_shard(const ShardedMatrix& matrix, int shard, const std::byte* stored, std::byte* dst);

/// The shards of a stack of experts: for each shard the slices of all experts, `stride` bytes apart.
struct ShardedStack {
    struct Shard {
        std::shared_ptr<std::byte> data;
        int64_t stride = 0;
        int64_t size_bytes = 0;
    };
    std::vector<Shard> shards;
};

/// Memory on the node of a shard, not yet written by anybody.
using ShardMemory = std::function<std::shared_ptr<std::byte>(int shard, size_t size_bytes)>;

/// Memory bound to nodes[shard]. Throws out_of_memory naming the device. Where the system refuses to bind, the memory
/// is where it is.
ShardMemory memory_on_nodes(std::string_view device, std::vector<int> nodes);

/// Cuts n_expert matrices, expert_stride bytes apart, on several threads. Throws unsupported if the matrix cannot be
/// cut, naming the type.
ShardedStack cut_stack(const ShardedMatrix& matrix, int64_t n_expert, const std::byte* stored, int64_t expert_stride,
                       const ShardMemory& memory);

}  // namespace ggmlx
