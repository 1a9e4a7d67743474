// Llama 1, 2 and 3 and the many models that share its config (SmolLM2, TinyLlama, Yi …).
// Source: Touvron et al. 2023, arXiv:2302.13971; Grattafiori et al. 2024, arXiv:2407.21783.

#include "src/arch/blocks.h"
#include "src/arch/decoder.h"
#include "src/arch/families.h"

namespace llm {

const Architecture kLlama = {
    .name = "llama",
    .tensors = dense_tensors,
    .kv_layers = decoder_kv_layers,
    .build = build_decoder,
    .ignored_sources = kRotaryTables,
};

}  // namespace llm
