#include "src/arch/parameters.h"

namespace llm {

ParameterCount count_parameters(const ModelConfig& config, std::span<const TensorSpec> specs) {
    ParameterCount count;
    for (const TensorSpec& spec : specs) {
        const int64_t n = spec.shape.n_elements();
        count.total += n;
        if (spec.role == ggmlx::Role::Expert)
            count.per_token += n / config.mixture.n_expert * config.mixture.router.k;
        else if (spec.role != ggmlx::Role::Embedding || config.tie_embeddings)
            count.per_token += n;
    }
    return count;
}

}  // namespace llm
