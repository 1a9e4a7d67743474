#pragma once
// The experts' feed-forward block of Experts and ExpertRows: gate and up, SwiGLU, down, for all pairs of a step.
//
// Weights that are dealt out to memory nodes (expert_shards.h) are as many smaller blocks, one per shard: the threads
// of its node compute a shard with its part of the intermediate dimension, and the shards' rows are added at the end,
// pairwise, which completes the one order of additions. Where columns of down cannot be dealt out, a shard has some of
// its rows: then h is put together first, and each shard gives a part of every row. Whole weights are one shard,
// computed by the whole team.

#include "ggmlx/backend/cpu/ops/expert_groups.h"

namespace ggmlx::cpu {

/// The light part: groups the pairs and converts x. Both ops have gate, up, down and biases from input 3 on.
void prepare_feed_forward(const OpCall& call, const Choice& choice, Scratch scratch, Worker& worker) noexcept;

/// The heavy part: the rows of all pairs, [n_pairs, n_embd], zero for those without an expert here.
void run_feed_forward(const OpCall& call, const Choice& choice, Scratch scratch, float* rows, Worker& worker) noexcept;

/// Bytes of scratch: enough for whole weights and for those dealt out to all groups of the team.
size_t feed_forward_scratch(const Node& node, const TeamKernels& team);

}  // namespace ggmlx::cpu
