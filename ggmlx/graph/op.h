#pragma once
// Every operation there is, and the parameters each carries. Builders with their contracts are in ops.h; the order of a
// node's inputs and outputs is given here, because backends read it.

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

namespace ggmlx {

enum class Op : uint8_t {
    // op               inputs -> outputs
    GetRows,      //  table, ids -> y
    RmsNorm,      //  x, weight? -> y
    Matmul,       //  weight, x -> y
    HeadMatmul,   //  weight, x -> y
    Add,          //  a, b -> y
    Mul,          //  a, b -> y
    Scale,        //  x -> y
    Clamp,        //  x -> y
    SigmoidGate,  //  x, gate -> y
    Slice,        //  x -> y
    Concat,       //  a, b -> y
    SwiGLU,       //  gate, up -> y
    Softmax,      //  x -> y
    TopK,         //  x, rows? -> weights, ids
    DivideBySum,  //  x -> y
    Router,       //  logits, rows, bias? -> weights, ids
    RopeTable,    //  positions -> table
    Rope,         //  x, table -> y
    CacheAppend,  //  cache, x, slots -> cache (aliased)
    Attention,    //  q, k_cache, v_cache, block_table, sequence, positions, sinks? -> y
    Experts,      //  x, ids, weights, gate, up, down, gate_bias?, up_bias?, down_bias? -> y
    // Parts of Experts, made by the plan (graph/expert_parts.h). They find an expert through the table slots [n_expert]
    // of the device they run on; Experts itself has no table: slot = expert. A plan always runs the parts, one
    // ExpertRows and one ExpertSum where a single device holds all experts.
    ExpertRows,    //  x, ids, slots, gate, up, down, gate_bias?, up_bias?, down_bias? -> rows
    ExpertMatmul,  //  x, ids, slots, weight, bias? -> rows
    ExpertSelect,  //  ids, (slots, rows) per device -> rows
    ExpertSum,     //  weights, ids, (slots, rows) per device -> y
    Copy,          //  x on another device -> y
};
inline constexpr int kOpCount = static_cast<int>(Op::Copy) + 1;
std::string_view name(Op op);

struct RmsNormParams {
    float eps = 1e-6f;
};
struct ScaleParams {
    float factor = 1.0f;
};
struct ClampParams {
    float limit = 1.0f;
};
struct SliceParams {
    int64_t first = 0;
};
struct SwiGLUParams {
    float alpha = 1.0f;  ///< y = gate * sigmoid(alpha * gate) * (up + up_offset)
    float clamp = 0.0f;  ///< > 0: gate is limited to <= clamp and up to [-clamp, clamp] first
    float up_offset = 0.0f;
};
struct TopKParams {
    int32_t k = 1;
};
/// How a mixture chooses experts and weighs them.
struct RouterParams {
    enum class Score : uint8_t {
        Softmax,          ///< over all experts
        Sigmoid,          ///< of each logit
        SoftmaxOfChosen,  ///< the logits themselves choose; weights are their softmax over the chosen
    };
    Score score = Score::Softmax;
    int32_t k = 1;
    /// > 1: experts form this many groups of equal size, one after the other; only those of the best groups_used groups
    /// can be chosen. A group is worth the sum of its group_best highest scores.
    int32_t n_groups = 1, groups_used = 1, group_best = 1;
    bool normalize = false;  ///< weights are divided by max(their sum, 1e-20)
    float scale = 1.0f;      ///< then multiplied by this
};
/// How positions turn into angles: angle i of position p is float(p) * inv_freq[i].
struct RopeTableParams {
    std::vector<float> inv_freq;  ///< one per rotated pair, scaling of the context already applied
    float magnitude = 1.0f;       ///< factor on cos and sin (YaRN's)
};
struct RopeParams {
    int32_t first = 0;         ///< the first rotated value of each head
    bool interleaved = false;  ///< pairs (2i, 2i+1) instead of (i, i + n/2)
    bool inverse = false;      ///< rotate back
};
struct AttentionParams {
    float scale = 1.0f;
    int32_t window = 0;  ///< > 0: only the last `window` positions, the query's own included
    /// > 0: a value is only the first head_dim_v of the row in v_cache, which may then be k_cache itself
    int64_t head_dim_v = 0;
};
/// For Experts and ExpertRows (three biases, all or none) and for ExpertMatmul (has_bias alone).
struct ExpertsParams {
    SwiGLUParams activation;
    bool has_bias = false;
};

using OpParams = std::variant<std::monostate, RmsNormParams, ScaleParams, ClampParams, SliceParams, SwiGLUParams,
                              TopKParams, RouterParams, RopeTableParams, RopeParams, AttentionParams, ExpertsParams>;

}  // namespace ggmlx
