#pragma once
// The definition of every op: slow, obvious, and exact to the bit. Backends are tested against it; the ref devices run
// it.
//
// All arithmetic is IEEE float32, round to nearest even, nothing fused unless "fma" is said, nothing flushed to zero.
//
// EIGHT SUMS. A sum of terms i = 0, 1, … runs in eight partial sums, term i into partial i mod 8 in increasing i, all
// starting from +0; they are reduced pairwise: (0+4, 1+5, 2+6, 3+7), then +2, then +1.
//
// matmul, head_matmul, experts (one output = a weight row w · an activation row x)
//   q8_0 q4_0 q4_1 q4_k q6_k mxfp4: x is quantized per 32 values (quant/activation.h: int8 q, scale s_a). Block b
//   counts
//     32 values from the start of the row; i = Σ w_int · q exactly; p = partial[b mod 8];
//     p = fma(float(i), s_w · s_a, p), the product of the scales rounded once. s_w as blocks.h sub_scale gives it
//     (q4_k: d · sc rounded; mxfp4: half the scale, integers doubled). q6_k: i = sc0 · i0 + sc1 · i1 over the block's
//     halves, s_w = d. With a minimum (q4_1, q4_k) then p = fma(-float(Σ q), m · s_a, p), m as sub_min gives it.
//     Padding counts as zeros.
//   mxfp8: w is decoded to float32 (scale · code); p = partial[b mod 8] over blocks b of 32, p = fma(w, x, p) with k
//     increasing inside the block; padding counts as zeros.
//   f32 f16 bf16: eight sums over k with p = fma(w, x, p).
//   A row whose activations cannot be quantized (NaN, infinity) is reported as NonFinite; its result is NaN.
// experts: gate and up as matmul, + bias (one addition), SwiGLU, down as matmul (quantizing anew), + bias.
//   y = 0; for s = 0 … k-1: y = y + (weight · row), product rounded. Nothing is added for id -1.
// swiglu: with clamp > 0: gate = min(gate, clamp), up = min(max(up, -clamp), clamp); y = gated(gate, alpha) · (up +
//   up_offset) (exp.h), the addition done even when up_offset is 0.
// rms_norm: eight sums of fma(x, x, p) over the row; s = 1 / sqrt(sum / float(n) + eps); y = (x · s) · weight.
// softmax: m = the maximum; e = exp_poly(x - m); eight sums of e; y = e / sum.
// divide_by_sum: the sum one after the other in increasing index (rows are short); y = x / max(sum, 1e-20).
// router: softmax as above (of the chosen: in the order of choice), sigmoid(x) = 1 / (1 + exp_poly(-x)); choice = score
// +
//   bias; a group's worth is added from its highest choice down; weights are divided by their sum as divide_by_sum
//   does, then scale · weight.
// sigmoid_gate: sigmoid(gate) · x. clamp, slice, concat: no rounding.
// attention: score_j = dot(q, k_j) · scale, the dot product in eight sums of fma over d; m = the maximum of the scores
//   and the sink; e_j = exp_poly(score_j - m); denominator: eight sums of e_j by the *position* j (partial j mod 8),
//   then
//   + exp_poly(sink - m); out[d] = fma(e_j, v_j[d], out[d]) from 0 in order of position, then out[d] / denominator.
// rope_table: angle = float(position) · inv_freq rounded to float32; cos and sin of it in double, rounded to float32,
//   then · magnitude.
// rope: y0 = x0 · c - x1 · s, y1 = x1 · c + x0 · s: two rounded products and a rounded sum; inverse: with -s.
// Values of f16, bf16, f8 weights and caches become float32 exactly; cache_append rounds to nearest even (f8_e4m3
// saturates at ±448). q8_0 caches: per 32 values of a row d = f16(amax / 127), at most 65504, q = rne(clamp(x · (1 /
// d), ±127)), zeros where d is 0, as quantize_matrix has it; read as float(d) · float(q), rounded once. A block with a
// NaN or an infinity is NaN throughout.
//
// An id, slot or block outside its table is reported as BadIndex and counts as -1: a zero row, nothing written, no
// expert. The row of a report is the token (get_rows, cache_append: the row of ids or slots).

#include "ggmlx/graph/call.h"

namespace ggmlx {

/// Runs one op on the calling thread. Views must be as the op's builder checked them; all memory is host memory. An
/// alias output (cache_append) has the bytes of its input. Needs no scratch.
/// Throws out_of_memory only; what a kernel finds wrong goes to call.status, which must be set.
void run_reference(const OpCall& call);

}  // namespace ggmlx
