// MiniMax-M2: q and k RMS-normalised over their whole width, rotation of a part of each head, experts chosen by sigmoid
// with a bias.
// Source: MiniMax 2025, its published configuration and Hugging Face transformers.

#include "src/arch/blocks.h"
#include "src/arch/decoder.h"
#include "src/arch/families.h"

namespace llm {
namespace {

constexpr MixtureNames kMiniMaxM2Names{
    .block = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2", .selection_bias = "e_score_correction_bias"};

}  // namespace

const Architecture kMiniMaxM2 = {
    .name = "minimax_m2",
    .tensors = [](const ModelConfig& config) { return decoder_tensors(config, kMiniMaxM2Names); },
    .kv_layers = decoder_kv_layers,
    .build = build_decoder,
    .ignored_sources = kRotaryTables,
};

}  // namespace llm
