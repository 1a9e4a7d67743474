// OLMoE: q and k are RMS-normalised over their whole width; q, k and v may be limited.
// Source: Muennighoff et al. 2024, arXiv:2409.02060.

#include "src/arch/blocks.h"
#include "src/arch/decoder.h"
#include "src/arch/families.h"

namespace llm {
namespace {

constexpr MixtureNames kOlmoeNames{};

}  // namespace

const Architecture kOlmoe = {
    .name = "olmoe",
    .tensors = [](const ModelConfig& config) { return decoder_tensors(config, kOlmoeNames); },
    .kv_layers = decoder_kv_layers,
    .build = build_decoder,
    .ignored_sources = kRotaryTables,
};

}  // namespace llm
