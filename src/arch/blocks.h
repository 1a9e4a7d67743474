#pragma once
// Pieces of graphs that several families share.

#include "src/arch/arch.h"

namespace llm {

ggmlx::Tensor build_dense(const BuildContext&);

}  // namespace llm
