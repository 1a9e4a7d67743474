// Qwen3, dense: every head of q and k is RMS-normalised before the rotation.
// Source: Yang et al. 2025, arXiv:2505.09388.

#include "src/arch/blocks.h"
#include "src/arch/dense.h"
#include "src/arch/families.h"

namespace llm {

const Architecture kQwen3 = {
    .name = "qwen3",
    .tensors = dense_tensors_with_qk_norm,
    .kv_layers = dense_kv_layers,
    .build = build_dense,
    .ignored_sources = kRotaryTables,
};

}  // namespace llm
