// Products in bf16 with AVX512-BF16; nothing on other architectures.

#if defined(__x86_64__)

#include "ggmlx/backend/cpu/simd/avx512_bf16.h"
#include "ggmlx/backend/cpu/kernels/matmul_bf16.inl.h"

namespace ggmlx {
constinit const Bf16Kernels avx512_bf16_kernels = make_bf16_pairs<Avx512Bf16>("avx512_bf16");
}

#endif
