// Qwen3, dense: every head of q and k is RMS-normalised before the rotation.
// Source: Yang et al. 2025, arXiv:2505.09388.

#include "src/arch/blocks.h"
#include "src/arch/decoder.h"
#include "src/arch/families.h"

namespace llm {

const Architecture kQwen3 = {
    .name = "qwen3",
    .tensors = dense_tensors,
    .kv_layers = decoder_kv_layers,
    .build = build_decoder,
    .ignored_sources = kRotaryTables,
};

}  // namespace llm
