#pragma once
// The line at start that says which kernels multiply the weights.

#include <span>
#include <string>

#include "src/session/kernel_use.h"

namespace cli {

/// "kernels: mxfp4 with avx512 int8, 96 tensors, 1.20 GiB; f32 with avx512 float, 12 tensors, 80.0 MiB (why)". Devices
/// are named where there are several; empty if nothing is multiplied.
std::string kernel_line(std::span<const llm::KernelUse> uses);

}  // namespace cli
