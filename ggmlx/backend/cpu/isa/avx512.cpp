// Kernels for AVX-512 F, BW, DQ, VL and VNNI; nothing on other architectures.

#if defined(__x86_64__)

#include "ggmlx/backend/cpu/simd/avx512.h"
#include "ggmlx/backend/cpu/kernels/make_kernels.inl.h"

namespace ggmlx {
constinit const CpuKernels avx512_kernels = make_kernels<Avx512>("avx512");
}

#endif
