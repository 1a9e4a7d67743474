// Kernels for AVX2, FMA and F16C; nothing on other architectures.

#if defined(__x86_64__)

#include "ggmlx/backend/cpu/simd/avx2.h"
#include "ggmlx/backend/cpu/kernels/make_kernels.inl.h"

namespace ggmlx {
constinit const CpuKernels avx2_kernels = make_kernels<Avx2>("avx2");
}

#endif
