#pragma once
// What a plan makes of experts(): parts that run where the experts are, and the sum that joins them. Used by placement
// alone; a model's graph says experts() (ops.h).
//
// A device holds some experts of a stacked weight, in slots of its own. slots: [n_expert] i32 is an input of the plan
// that gives the slot of each expert there, -1 where the expert is elsewhere; the weights and biases of one node share
// it. In a call the views of stacked tensors start at slot 0, slot_stride bytes apart, and shape[0] is the number of
// slots (a slot beyond it is a device error).
//
//   all experts on one device    y = expert_sum(weights, ids, {slots, expert_rows(…, slots)})
//   experts of several devices   one expert_rows per device, its rows copied to the device that adds;
//                                y = expert_sum(weights, ids, {slots_0, rows_0}, {slots_1, rows_1}, …)
//   gate/up of an expert here,   expert_matmul for gate and up on their devices; expert_select joins the rows of each;
//   its down elsewhere           swiglu(gate, up); expert_matmul for down; expert_sum
//
// All three give the same bits as experts(), whatever the slots.

#include <vector>

#include "ggmlx/graph/ops.h"

namespace ggmlx {

/// The rows of the experts that are here: row[t][s] = down_e · swiglu(gate_e · x_t, up_e · x_t) (+ biases) for e =
/// ids[t][s] with slots[e] >= 0; zero for all others.
/// x: [n_tokens, n_embd];  ids: [n_tokens, k] i32, -1: none;  slots: [n_expert] i32;  rows: [n_tokens, k, n_embd].
Tensor expert_rows(Graph& g, const ExpertWeights& w, Tensor x, Tensor ids, Tensor slots, SwiGLUParams activation = {});

/// One matrix of the experts that are here: row[t][s] = weight_e · x (+ bias_e) with x = x[t] or x[t][s]; zero for
/// experts elsewhere. weight: [n_expert, n_out, n_in];  bias: [n_expert, n_out] f32 or empty;  x: [n_tokens, n_in] or
/// [n_tokens, k, n_in];  rows: [n_tokens, k, n_out].
Tensor expert_matmul(Graph& g, Tensor weight, Tensor bias, Tensor x, Tensor ids, Tensor slots);

/// The rows that one device made, and its slot table: which of them are its own.
struct DeviceRows {
    Tensor slots;  ///< [n_expert] i32
    Tensor rows;   ///< [n_tokens, k, n]
};

/// For every token and slot the row of the first device that has the expert; zero for id -1. An id that no device has
/// is a device error. y: [n_tokens, k, n].
Tensor expert_select(Graph& g, Tensor ids, const std::vector<DeviceRows>& parts);

/// y_t = Σ_s weights[t][s] · row[t][s], the row of the first device that has the expert; added in slot order 0 … k-1
/// from 0, each product rounded before it is added; id -1 adds nothing. An id that no device has is a device error.
/// weights: [n_tokens, k];  y: [n_tokens, n].
Tensor expert_sum(Graph& g, Tensor weights, Tensor ids, const std::vector<DeviceRows>& parts);

/// The same values in the memory of the device that runs this node. x: a value or an input.
Tensor copy(Graph& g, Tensor x);

}  // namespace ggmlx
