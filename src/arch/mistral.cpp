// Mistral 7B and relatives: Llama whose attention may be limited to a sliding window.
// Source: Jiang et al. 2023, arXiv:2310.06825.

#include "src/arch/blocks.h"
#include "src/arch/decoder.h"
#include "src/arch/families.h"

namespace llm {

const Architecture kMistral = {
    .name = "mistral",
    .tensors = dense_tensors,
    .kv_layers = decoder_kv_layers,
    .build = build_decoder,
    .ignored_sources = kRotaryTables,
};

}  // namespace llm
