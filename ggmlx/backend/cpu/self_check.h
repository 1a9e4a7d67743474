#pragma once
// Products of the chosen instruction set against those of plain C++, on one small matrix of every type: microseconds at
// start that tell a broken processor, virtual machine or build before it tells wrong answers.

#include "ggmlx/backend/cpu/kernels.h"

namespace ggmlx {

/// Throws `unsupported`, naming the type and what to do, if a result differs in a bit; one in bf16, if it differs by
/// more than rounding.
void check_kernels(const CpuKernels& kernels);

}  // namespace ggmlx
