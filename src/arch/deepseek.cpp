// DeepSeek-V2, V3 and R1, and Kimi K2, which is V3 with other numbers: latent attention, dense layers first, then many
// small experts chosen from some groups of them, and shared experts.
// Source: DeepSeek-AI 2024, arXiv:2405.04434 and arXiv:2412.19437; Kimi Team 2025, arXiv:2507.20534.

#include "src/arch/blocks.h"
#include "src/arch/decoder.h"
#include "src/arch/families.h"

namespace llm {
namespace {

constexpr Architecture deepseek(std::string_view name) {
    return {
        .name = name,
        .tensors = [](const ModelConfig& config) { return decoder_tensors(config, {}); },
        .kv_layers = decoder_kv_layers,
        .build = build_decoder,
        .ignored_sources = kRotaryTables,
    };
}

}  // namespace

const Architecture kDeepSeekV2 = deepseek("deepseek_v2");
const Architecture kDeepSeekV3 = deepseek("deepseek_v3");
const Architecture kKimiK2 = deepseek("kimi_k2");

}  // namespace llm
