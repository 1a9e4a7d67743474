// gpt-oss: attention sinks, windows in every other layer, experts with biases and a clamped SwiGLU.
// Source: OpenAI 2025, arXiv:2508.10925.

#include "src/arch/blocks.h"
#include "src/arch/decoder.h"
#include "src/arch/families.h"

namespace llm {
namespace {

constexpr MixtureNames kGptOssNames{.is_gpt_oss = true};

}  // namespace

const Architecture kGptOss = {
    .name = "gpt_oss",
    .tensors = [](const ModelConfig& config) { return decoder_tensors(config, kGptOssNames); },
    .kv_layers = decoder_kv_layers,
    .build = build_decoder,
    .ignored_sources = kRotaryTables,
};

}  // namespace llm
