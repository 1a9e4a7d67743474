// Kernels in plain C++, for every processor.

#include "ggmlx/backend/cpu/simd/scalar.h"
#include "ggmlx/backend/cpu/kernels/make_kernels.inl.h"

namespace ggmlx {
constinit const CpuKernels scalar_kernels = make_kernels<Scalar>("scalar");
}
