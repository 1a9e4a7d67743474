// Products in bf16 with AMX; nothing on other architectures.

#if defined(__x86_64__)

#include "ggmlx/backend/cpu/simd/amx_bf16.h"
#include "ggmlx/backend/cpu/kernels/matmul_bf16.inl.h"

namespace ggmlx {
constinit const Bf16Kernels amx_bf16_kernels = make_bf16_tiles<AmxBf16>("amx_bf16");
}

#endif
