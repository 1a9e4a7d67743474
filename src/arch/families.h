#pragma once
// Every model family that this version knows; each is defined in the file of its name and listed once in arch.cpp.

#include "src/arch/arch.h"

namespace llm {

extern const Architecture kLlama;    ///< Llama 1-3, SmolLM2 and others that say "llama"
extern const Architecture kMistral;  ///< Mistral 7B and relatives: Llama with a sliding window
extern const Architecture kQwen2;    ///< Qwen2, Qwen2.5: biases on q, k and v
extern const Architecture kQwen3;    ///< Qwen3 dense: RMS norms on the heads of q and k

extern const Architecture kMixtral;     ///< Mixtral 8x7B, 8x22B
extern const Architecture kQwen2Moe;    ///< Qwen1.5-MoE, Qwen2-57B-A14B
extern const Architecture kQwen3Moe;    ///< Qwen3-30B-A3B, Qwen3-235B-A22B, Qwen3-Coder
extern const Architecture kOlmoe;       ///< OLMoE
extern const Architecture kGptOss;      ///< gpt-oss-20b, gpt-oss-120b
extern const Architecture kDeepSeekV2;  ///< DeepSeek-V2, V2-Lite
extern const Architecture kDeepSeekV3;  ///< DeepSeek-V3, R1
extern const Architecture kKimiK2;      ///< Kimi K2
extern const Architecture kGlm4Moe;     ///< GLM-4.5, GLM-4.5-Air
extern const Architecture kMiniMaxM2;   ///< MiniMax-M2

}  // namespace llm
