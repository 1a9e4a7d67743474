// Products of many columns for AMX with int8; nothing on other architectures.

#if defined(__x86_64__)

#include "ggmlx/backend/cpu/simd/amx.h"
#include "ggmlx/backend/cpu/kernels/matmul_amx.inl.h"

namespace ggmlx {
namespace {

constexpr MatmulKernels make_amx_kernels() {
    MatmulKernels k{};
    for_each_tile([&](auto of) {
        using Tile = typename decltype(of)::Tile;
        k.matmul_groups[static_cast<int>(Tile::kType)] = matmul_groups_amx<Amx, Tile>;
    });
    k.int8_peak = int8_peak_amx<Amx>;
    return k;
}

}  // namespace

constinit const MatmulKernels amx_matmul = make_amx_kernels();

}  // namespace ggmlx

#endif
