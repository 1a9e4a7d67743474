#pragma once
// Which tensor gets which type: --type, --tensor-type REGEX=TYPE and friends, and what happens where a type does not
// fit a tensor.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ggmlx/core/dtype.h"
#include "src/arch/arch.h"

namespace convert {

/// One REGEX=TYPE. The pattern is searched in the tensor's name.
struct TypeRule {
    std::string pattern;
    ggmlx::DType dtype = ggmlx::DType::F32;
};

/// A type that weights can be stored in: f32, f16, bf16 or a block type. Throws invalid_argument, listing them.
ggmlx::DType parse_weight_type(std::string_view text);
/// Splits at the last `=`, so a pattern may hold one. Throws invalid_argument that quotes the rule.
TypeRule parse_type_rule(std::string_view text);

/// The user's wishes. For a matrix the first that says something decides: the first matching rule (also one that says
/// what would have happened anyway), output or embedding type for these two, type, the source's own type. Vectors,
/// norms and routers are always f32.
struct Recipe {
    std::optional<ggmlx::DType> type;
    std::vector<TypeRule> rules;
    std::optional<ggmlx::DType> output_type;     ///< of the head that gives logits
    std::optional<ggmlx::DType> embedding_type;  ///< of token_embd, which is the head too when embeddings are tied
    bool strict_type = false;                    ///< a fallback is an error
};

/// A decision. wanted differs from dtype where a row's length does not suit the blocks of the wanted type (q4_k then
/// becomes q4_1, q6_k becomes q8_0).
struct TypeChoice {
    ggmlx::DType wanted = ggmlx::DType::F32;
    ggmlx::DType dtype = ggmlx::DType::F32;
    bool fell_back() const { return wanted != dtype; }
};

/// One choice per spec, in order. own_type: what a matrix is stored as now. Throws invalid_argument for a bad pattern,
/// for a rule that matches no matrix (with the nearest names) and, with strict_type, for fallbacks, naming them all.
std::vector<TypeChoice> choose_types(const Recipe& recipe, const std::vector<llm::TensorSpec>& specs,
                                     const std::function<ggmlx::DType(const llm::TensorSpec&)>& own_type);

}  // namespace convert
