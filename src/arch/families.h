#pragma once
// Every model family that this version knows; each is defined in the file of its name and listed once in arch.cpp.

#include "src/arch/arch.h"

namespace llm {

extern const Architecture kLlama;    ///< Llama 1-3, SmolLM2 and others that say "llama"
extern const Architecture kMistral;  ///< Mistral 7B and relatives: Llama with a sliding window
extern const Architecture kQwen2;    ///< Qwen2, Qwen2.5: biases on q, k and v
extern const Architecture kQwen3;    ///< Qwen3 dense: RMS norms on the heads of q and k

}  // namespace llm
