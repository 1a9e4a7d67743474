#pragma once
// How large a model is, from its tensors' shapes.

#include <span>

#include "src/arch/arch.h"

namespace llm {

struct ParameterCount {
    int64_t total = 0;
    /// Those that one token is multiplied with: of routed experts only the chosen ones, of an embedding that is not the
    /// head as well nothing.
    int64_t per_token = 0;
};

ParameterCount count_parameters(const ModelConfig& config, std::span<const TensorSpec> specs);

}  // namespace llm
