#include "src/arch/arch.h"

#include "src/arch/families.h"

namespace llm {
namespace {

constexpr const Architecture* kArchitectures[] = {&kLlama,      &kMistral,  &kQwen2,   &kQwen3,    &kMixtral,
                                                  &kQwen2Moe,   &kQwen3Moe, &kOlmoe,   &kGptOss,   &kDeepSeekV2,
                                                  &kDeepSeekV3, &kKimiK2,   &kGlm4Moe, &kMiniMaxM2};

}  // namespace

const Architecture& architecture(std::string_view model_type) {
    std::string known;
    for (const Architecture* a : kArchitectures) {
        if (a->name == model_type) return *a;
        known += (known.empty() ? "" : ", ") + std::string(a->name);
    }
    ggmlx::fail(ggmlx::ErrorKind::Unsupported,
                "model_type \"{}\" is not supported; this version knows the architectures {}", model_type, known);
}

std::span<const Architecture* const> all_architectures() { return kArchitectures; }

}  // namespace llm
