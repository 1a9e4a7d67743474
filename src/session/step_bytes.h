#pragma once
// How many bytes a step has to read: the numerator of the memory limit.

#include <cstdint>

#include "ggmlx/graph/graph.h"

namespace llm {

/// Bytes of a weight or state in its stored form.
uint64_t stored_bytes(ggmlx::Tensor tensor);

/// Bytes of weights that a step of this graph reads at least: every matrix once, of a table the rows looked up, of
/// stacked experts as many as its tokens can choose (tokens · k, at most all). On all devices together.
uint64_t weight_bytes(const ggmlx::Graph& graph);

/// Bytes of cached keys and values that a query reads with `depth` tokens before it, windows respected.
uint64_t cache_bytes(const ggmlx::Graph& graph, int64_t depth);

}  // namespace llm
