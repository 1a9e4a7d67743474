// Products of many columns for AMX with int8; nothing on other architectures.

#if defined(__x86_64__)

#if !defined(__clang__)
// GCC 12 calls the undefined vectors inside its own intrinsics uninitialized (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include "ggmlx/backend/cpu/simd/amx.h"
#include "ggmlx/backend/cpu/kernels/matmul_amx.inl.h"

namespace ggmlx {
namespace {

constexpr MatmulKernels make_amx_kernels() {
    MatmulKernels k{};
    k.matmul_groups[static_cast<int>(DType::Q8_0)] = matmul_groups_amx<Amx, TileQ8_0>;
    k.matmul_groups[static_cast<int>(DType::Q4_0)] = matmul_groups_amx<Amx, TileQ4_0>;
    k.matmul_groups[static_cast<int>(DType::Q4_1)] = matmul_groups_amx<Amx, TileQ4_1>;
    k.matmul_groups[static_cast<int>(DType::Q4_K)] = matmul_groups_amx<Amx, TileQ4_K>;
    k.matmul_groups[static_cast<int>(DType::Q6_K)] = matmul_groups_amx<Amx, TileQ6_K>;
    k.matmul_groups[static_cast<int>(DType::MXFP4)] = matmul_groups_amx<Amx, TileMXFP4>;
    k.int8_peak = int8_peak_amx<Amx>;
    return k;
}

}  // namespace

constinit const MatmulKernels amx_matmul = make_amx_kernels();

}  // namespace ggmlx

#endif
