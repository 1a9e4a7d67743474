// Qwen3, mixture of experts: no shared expert; heads of q and k are RMS-normalised before the rotation.
// Source: Yang et al. 2025, arXiv:2505.09388.

#include "src/arch/blocks.h"
#include "src/arch/decoder.h"
#include "src/arch/families.h"

namespace llm {
namespace {

constexpr MixtureNames kQwen3MoeNames{};

}  // namespace

const Architecture kQwen3Moe = {
    .name = "qwen3_moe",
    .tensors = [](const ModelConfig& config) { return decoder_tensors(config, kQwen3MoeNames); },
    .kv_layers = decoder_kv_layers,
    .build = build_decoder,
    .ignored_sources = kRotaryTables,
};

}  // namespace llm
