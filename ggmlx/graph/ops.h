#pragma once
// Every builder: what an op means, its shapes, what it throws. Read this first. The reference implementation
// (ggmlx/reference) is the definition; the order of additions is part of it, so results are the same bits on every CPU
// ISA, thread count, batch size and placement.
//
// Notation: n_tokens rows of a step. A padded row has id, slot or sequence -1. All values are f32 unless said
// otherwise. Every builder throws invalid_argument, naming the op and the tensors, if dtypes or shapes do not fit.

#include <optional>
#include <utility>

#include "ggmlx/graph/graph.h"

namespace ggmlx {

/// y[i] = row ids[i] of table, as f32.  table: [n_rows, n_cols], any weight dtype (tiles are read row-wise), or an f32
/// value;  ids: [n] i32, where -1 gives a zero row and anything else out of range is reported as a device error;
/// y: [n, n_cols].
Tensor get_rows(Graph& g, Tensor table, Tensor ids);

/// Root-mean-square normalisation over the last dim: y = x / sqrt(mean(x²) + eps) · weight.
/// x: [.., n] f32;  weight: [n] f32, or empty for no weight;  y: shape of x.
/// Source: Zhang & Sennrich 2019, arXiv:1910.07467.
Tensor rms_norm(Graph& g, Tensor x, Tensor weight, float eps);

/// y = x · Wᵀ.  weight: [n_out, n_in] of any weight dtype;  x: [n_tokens, n_in] f32;  y: [n_tokens, n_out].
/// Block types with integers: x is quantized to int8 per 32 values (quant/activation.h) and dot products are exact
/// integers, added in eight partial sums (block b into partial b mod 8). MXFP8: the same order over k, float. Plain
/// types: value k goes into partial k mod 8.
Tensor matmul(Graph& g, Tensor weight, Tensor x);

/// One matrix per head: y[t][h] = weight[h] · x[t][h], each product as in matmul.  weight: [n_head, n_out, n_in] of any
/// weight dtype;  x: [n_tokens, n_head, n_in];  y: [n_tokens, n_head, n_out].
Tensor head_matmul(Graph& g, Tensor weight, Tensor x);

/// y = a + b, y = a · b.  a: [.., n];  b: the shape of a, or [n] added to (multiplied with) every row.
Tensor add(Graph& g, Tensor a, Tensor b);
Tensor mul(Graph& g, Tensor a, Tensor b);
/// y = factor · x.
Tensor scale(Graph& g, Tensor x, float factor);
/// y = x limited to [-limit, limit]; NaN stays NaN. Throws invalid_argument unless limit > 0.
Tensor clamp(Graph& g, Tensor x, float limit);
/// y[t] = x[t] · sigmoid(gate[t]).  x: [n_tokens, n];  gate: [n_tokens, 1];  y: shape of x.
Tensor sigmoid_gate(Graph& g, Tensor x, Tensor gate);

/// Values [first, first + n) of every row.  x: [.., n_x] f32;  y: [.., n].
Tensor slice(Graph& g, Tensor x, int64_t first, int64_t n);
/// Every row of a, and behind it that of b.  a: [.., n_a] f32;  b: [.., n_b], the same dims before;
/// y: [.., n_a + n_b].
Tensor concat(Graph& g, Tensor a, Tensor b);

/// y = silu(gate) · up, with the variants of SwiGLUParams.  gate, up: [.., n], the same shape.
/// Source: Shazeer 2020, arXiv:2002.05202.
Tensor swiglu(Graph& g, Tensor gate, Tensor up, SwiGLUParams params = {});

/// Softmax over the last dim.
Tensor softmax(Graph& g, Tensor x);

struct TopK {
    Tensor weights;  ///< [n_tokens, k], the chosen values, largest first
    Tensor ids;      ///< [n_tokens, k] i32
};
/// The k largest of each row; of equal values (-0 equals +0) the lower index wins. A row with a non-finite value is
/// reported as a device error and gives ids 0 … k-1 with weights 0. x: [n_tokens, n];  rows: [n_tokens] i32 or empty: a
/// row where it is negative is padding and chooses nothing (ids -1, weights 0, no report).
/// Throws invalid_argument unless 1 <= k <= n.
TopK top_k(Graph& g, Tensor x, int32_t k, Tensor rows = {});

/// y = x / max(sum of the row, 1e-20).  x: [n_tokens, n]
Tensor divide_by_sum(Graph& g, Tensor x);

struct Routing {
    Tensor weights;  ///< [n_tokens, k]
    Tensor ids;      ///< [n_tokens, k] i32, the highest score first
};
/// Chooses k experts for each token, in float32: scores from logits by params.score; choice = score + bias, which
/// decides (among the best groups) and is then forgotten; weight = score of the chosen, normalised and scaled as params
/// say. Of equal choices (groups: of equal groups) the lower index wins. A row with a logit that is not finite is
/// reported as a device error and gives ids 0 … k-1 with weights 0. logits: [n_tokens, n_expert];  rows: [n_tokens]
/// i32: a row where it is negative is padding and chooses nothing (ids -1, weights 0, no report);  bias: [n_expert] f32
/// or empty. Throws invalid_argument for numbers that make no sense together (k of too few experts, groups of unequal
/// size …).
/// Source: Shazeer et al. 2017, arXiv:1701.06538; groups: arXiv:2405.04434; sigmoid with bias: arXiv:2408.15664 and
/// arXiv:2412.19437.
Routing router(Graph& g, Tensor logits, Tensor rows, Tensor bias, RouterParams params);

/// cos and sin of every position: table[t][i] = {cos, sin}(float(positions[t]) · inv_freq[i]) · magnitude.
/// positions: [n_tokens] i32;  table: [n_tokens, n_pairs, 2]. Computed once per step and shared by all layers.
Tensor rope_table(Graph& g, Tensor positions, RopeTableParams params);

/// Rotary position embedding of values [first, first + 2 · n_pairs) of every head; the others pass through.
/// x: [n_tokens, n_head, head_dim];  table: [n_tokens, n_pairs, 2];  y: shape of x.
/// Source: Su et al. 2021, arXiv:2104.09864; the half-split form is Hugging Face's.
Tensor rope(Graph& g, Tensor x, Tensor table, RopeParams params);

/// Writes one row per token into a cache: row t goes to position slots[t] (block slots[t] / block_len, row slots[t] %
/// block_len); -1 writes nothing. cache: State [n_blocks, n_head_kv, block_len, head_dim] of f32, f16, bf16, f8_e4m3 or
/// q8_0. A q8_0 cache has no tiles: each row is ceil(head_dim / 32) RowQ8_0 (quant/tiles.h), codes beyond head_dim are
/// 0 and nothing reads them; block_len must be a multiple of 16, so that its rows take the bytes that its tiles would.
/// x: [n_tokens, n_head_kv, head_dim];  slots: [n_tokens] i32. Returns the cache as it is afterwards: read that handle,
/// so that the order of writing and reading is part of the graph.
Tensor cache_append(Graph& g, Tensor cache, Tensor x, Tensor slots);

struct AttentionInputs {
    Tensor q;            ///< [n_tokens, n_head, head_dim]
    Tensor k_cache;      ///< [n_blocks, n_head_kv, block_len, head_dim], as returned by cache_append
    Tensor v_cache;      ///< [n_blocks, n_head_kv, block_len, head_dim_v], or k_cache again, see head_dim_v of params
    Tensor block_table;  ///< [n_sequences, max_blocks] i32: the cache block that holds positions block_len·b … of a
                         ///< sequence
    Tensor sequence;     ///< [n_tokens] i32: the row of block_table; -1: a padded token, its output is zero
    Tensor positions;    ///< [n_tokens] i32: a token sees positions 0 … its own of its sequence
    Tensor sinks;        ///< [n_head] f32 or empty: a logit per head that only enters the denominator
};
/// Causal attention over cached keys and values; several sequences of different lengths in one op. Head h reads KV head
/// h / (n_head / n_head_kv). Softmax in f32 over all visible keys in order of position; the result of a token does not
/// depend on the others in the batch. y: [n_tokens, n_head · head_dim_v]. With params.head_dim_v > 0 values are the
/// first head_dim_v of the rows of v_cache: latent attention keeps one row per token, whose beginning is the value.
/// Source: Vaswani et al. 2017, arXiv:1706.03762; GQA: Ainslie et al. 2023, arXiv:2305.13245; latent attention:
/// DeepSeek-AI 2024, arXiv:2405.04434.
Tensor attention(Graph& g, const AttentionInputs& in, AttentionParams params);

struct ExpertWeights {
    Tensor gate, up;            ///< [n_expert, n_ff, n_embd]
    Tensor down;                ///< [n_expert, n_embd, n_ff]
    Tensor gate_bias, up_bias;  ///< [n_expert, n_ff] f32, all three or none
    Tensor down_bias;           ///< [n_expert, n_embd] f32
};
/// Routed experts of a mixture, as one op: for each token t and slot s with expert e = ids[t][s],
///   row[t][s] = down_e · swiglu(gate_e · x_t, up_e · x_t) (+ biases),   y_t = Σ_s weights[t][s] · row[t][s],  s = 0 …
///   k-1 in this order, the product rounded, then added.
/// A plan always lowers it to the parts of expert_parts.h, by device and expert; the rows of all devices are added on
/// one, in slot order, so an expert's home changes no bit. This op itself reads stacked weights by expert number: it is
/// the definition that its parts are tested against.
/// x: [n_tokens, n_embd];  ids: [n_tokens, k] i32, -1: no expert (adds nothing);  weights: [n_tokens, k];
/// y: [n_tokens, n_embd]. An expert nobody chose costs nothing.
/// Source: Shazeer et al. 2017, arXiv:1701.06538.
Tensor experts(Graph& g, const ExpertWeights& w, Tensor x, Tensor ids, Tensor weights, SwiGLUParams activation = {});

/// The same bytes seen with another shape. Throws unless the number of elements stays.
Tensor reshape(Graph& g, Tensor x, Shape shape);

}  // namespace ggmlx
