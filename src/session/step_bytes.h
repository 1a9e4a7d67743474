#pragma once
// How many bytes a step has to read: the numerator of the memory limit.

#include <cstdint>
#include <span>

#include "ggmlx/graph/graph.h"
#include "ggmlx/placement/rules.h"

namespace llm {

/// Bytes of a weight or state in its stored form.
uint64_t stored_bytes(ggmlx::Tensor tensor);

/// Bytes of weights that a step of this graph reads at least: every matrix once, of a table the rows looked up, of
/// stacked experts as many as its tokens can choose (tokens · k, at most all). On all devices together.
uint64_t weight_bytes(const ggmlx::Graph& graph);

/// Bytes of cached keys and values that a query reads with `depth` tokens before it, windows respected.
uint64_t cache_bytes(const ggmlx::Graph& graph, int64_t depth);

/// The least time of a step with `depth` tokens before it, in seconds: layer after layer, on every device the bytes it
/// must read over its rate. Experts and shared experts of different devices are read at the same time, everything else
/// one after the other. rates: bytes a second by device; a device with rate 0 takes no time.
double least_seconds(const ggmlx::Graph& graph, const ggmlx::Placement& placement, std::span<const double> rates,
                     int64_t depth);

}  // namespace llm
