// Qwen2 and Qwen2.5, dense: q, k and v have biases; upper layers may use a sliding window.
// Source: Yang et al. 2024, arXiv:2407.10671.

#include "src/arch/blocks.h"
#include "src/arch/decoder.h"
#include "src/arch/families.h"

namespace llm {

const Architecture kQwen2 = {
    .name = "qwen2",
    .tensors = dense_tensors,
    .kv_layers = decoder_kv_layers,
    .build = build_decoder,
    .ignored_sources = kRotaryTables,
};

}  // namespace llm
