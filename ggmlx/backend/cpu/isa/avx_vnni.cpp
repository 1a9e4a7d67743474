// Products for AVX-VNNI (vpdpbusd without AVX-512); nothing on other architectures.

#if defined(__x86_64__)

#include "ggmlx/backend/cpu/simd/avx_vnni.h"
#include "ggmlx/backend/cpu/kernels/make_kernels.inl.h"

namespace ggmlx {
constinit const MatmulKernels avx_vnni_matmul = make_tile_kernels<AvxVnni>();
}

#endif
