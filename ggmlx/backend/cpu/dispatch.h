#pragma once
// CPUID -> one table of kernels. Nothing else asks the processor what it can do.

#include <span>
#include <string>
#include <string_view>

#include "ggmlx/backend/backend.h"
#include "ggmlx/backend/cpu/kernels.h"

namespace ggmlx {

/// The kernels this processor (and its operating system) can run, best first; scalar is always the last.
std::span<const CpuKernels* const> supported_kernels();

/// The kernels called `isa`; empty: those that the environment variable GGMLX_ISA names, else the best. Throws
/// unsupported for a name this machine cannot run, listing those it can.
const CpuKernels& choose_kernels(std::string_view isa);

/// The kernels with the products in bf16 that this processor has beside them; without, if it has none.
CpuKernels with_fast_bf16(CpuKernels kernels);

/// What the table multiplies weights of a type with: products in bf16 or int8, or products of floats and why.
ProductKernels describe_products(const CpuKernels& kernels, DType weight);

/// Why an instruction set of this processor is left out; empty if none is.
std::string left_out_reason();

/// The processor's own name, "AMD EPYC 7763 64-Core Processor", or "unknown processor".
std::string processor_name();

}  // namespace ggmlx
