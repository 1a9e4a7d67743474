// GLM-4.5 and GLM-4.5-Air: rotation of half of each head, experts chosen by sigmoid with a bias, a shared expert.
// Source: GLM-4.5 Team 2025, arXiv:2508.06471.

#include "src/arch/blocks.h"
#include "src/arch/decoder.h"
#include "src/arch/families.h"

namespace llm {
namespace {

constexpr MixtureNames kGlm4MoeNames{};

}  // namespace

const Architecture kGlm4Moe = {
    .name = "glm4_moe",
    .tensors = [](const ModelConfig& config) { return decoder_tensors(config, kGlm4MoeNames); },
    .kv_layers = decoder_kv_layers,
    .build = build_decoder,
    .ignored_sources = kRotaryTables,
};

}  // namespace llm
