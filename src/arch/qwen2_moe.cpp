// Qwen1.5-MoE and Qwen2-MoE: many small experts, and a shared one with a gate of its own.
// Source: Yang et al. 2024, arXiv:2407.10671.

#include "src/arch/blocks.h"
#include "src/arch/decoder.h"
#include "src/arch/families.h"

namespace llm {
namespace {

constexpr MixtureNames kQwen2MoeNames{.shared = "shared_expert"};

}  // namespace

const Architecture kQwen2Moe = {
    .name = "qwen2_moe",
    .tensors = [](const ModelConfig& config) { return decoder_tensors(config, kQwen2MoeNames); },
    .kv_layers = decoder_kv_layers,
    .build = build_decoder,
    .ignored_sources = kRotaryTables,
};

}  // namespace llm
