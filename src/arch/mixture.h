#pragma once
// The mixture of experts that families share: router, stacked experts, shared expert. Families differ in the names that
// their checkpoints use and by ModelConfig::mixture.

#include <string_view>

#include "src/arch/arch.h"
#include "src/arch/tensor_table.h"

namespace llm {

/// What the parts are called in a checkpoint, below "model.layers.N.".
struct MixtureNames {
    std::string_view block = "mlp";
    std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";  ///< of BLOCK.experts.E
    std::string_view selection_bias = "gate.e_score_correction_bias";         ///< below BLOCK
    std::string_view shared = "shared_experts";                               ///< below BLOCK
    bool is_gpt_oss = false;  ///< one tensor for all experts, gate and up interleaved, biases, a router of that name
};

/// "ffn_gate_inp", "exp_probs_b", "ffn_{gate,up,down}_exps", "ffn_{gate,up,down}_shexp" of one layer, as far as the
/// config says that there are such. Experts may be one checkpoint tensor each, or stacked as transformers 5 does.
void add_mixture(TensorTable& table, const ModelConfig& config, const MixtureNames& names);

/// Router, experts and shared expert of layer il.  x: [n_tokens, n_embd], already normalised;  y: [n_tokens, n_embd].
/// Values that can be dumped: "blk.N.router_logits", "router_ids", "router_weights", "ffn_moe_out", "ffn_shared_out".
ggmlx::Tensor mixture_block(const BuildContext& c, int64_t il, ggmlx::Tensor x);

}  // namespace llm
