// Mixtral: eight experts, two for each token.
// Source: Jiang et al. 2024, arXiv:2401.04088.

#include "src/arch/blocks.h"
#include "src/arch/decoder.h"
#include "src/arch/families.h"

namespace llm {
namespace {

constexpr MixtureNames kMixtralNames{.block = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"};

}  // namespace

const Architecture kMixtral = {
    .name = "mixtral",
    .tensors = [](const ModelConfig& config) { return decoder_tensors(config, kMixtralNames); },
    .kv_layers = decoder_kv_layers,
    .build = build_decoder,
    .ignored_sources = kRotaryTables,
};

}  // namespace llm
