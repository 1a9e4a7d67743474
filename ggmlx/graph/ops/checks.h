#pragma once
// The checks that builders share. A message starts with the op, names the argument by its place in the op's contract
// ("weight", "ids") and by the tensor's own name, and gives both sides of what does not fit.

#include <string>
#include <string_view>

#include "ggmlx/core/tensor.h"
#include "ggmlx/graph/op.h"

namespace ggmlx::checks {

/// "weight blk.3.attn_q"; only the argument's place when the tensor has no name.
std::string label(std::string_view argument, Tensor t);

void given(Op op, std::string_view argument, Tensor t);
/// given, and of this dtype.
void dtype(Op op, std::string_view argument, Tensor t, DType wanted);
/// given, and with this many dims; `form` is how the contract writes them: "[n_tokens, n_in]".
void rank(Op op, std::string_view argument, Tensor t, int wanted, std::string_view form);
/// given, and of exactly this shape.
void shape(Op op, std::string_view argument, Tensor t, const Shape& wanted);
/// dtype and rank, dtype and shape.
void array(Op op, std::string_view argument, Tensor t, DType wanted, int rank, std::string_view form);
void array(Op op, std::string_view argument, Tensor t, DType wanted, const Shape& shape);
/// f32 with at least one dim.
void rows(Op op, std::string_view argument, Tensor t);

/// A type that weights are stored in: f32, f16, bf16 or a block type whose block length divides the last extent (any
/// extent for blocks of 32, which are padded).
void weight_dtype(Op op, std::string_view argument, Tensor t);

}  // namespace ggmlx::checks
