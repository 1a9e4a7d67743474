#include "ggmlx/backend/cpu/self_check.h"

#include <cstring>
#include <string>
#include <vector>

#include "ggmlx/core/dtype.h"
#include "ggmlx/core/error.h"

namespace ggmlx {
namespace {

constexpr int64_t kRows = 16, kIn = 256, kBlocks = kIn / 32, kCheckColumns = 3;

/// One row tile of bytes that are harmless as quants and as scales of every type, and columns that use all of int8.
struct CheckInput {
    std::vector<std::byte> weights;
    std::vector<float> x = std::vector<float>(kCheckColumns * kIn);
    std::vector<ActivationBlock> blocks = std::vector<ActivationBlock>(kCheckColumns * kBlocks);
    std::vector<ActivationBlock> group = std::vector<ActivationBlock>(kBlocks * kGroupColumns);

    CheckInput(DType dtype, const CpuKernels& kernels)
        : weights(static_cast<size_t>(storage_bytes(dtype, {kRows, kIn}))) {
        for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::byte>(0x30 + i % 7);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 255) - 127.0f;
        for (int64_t c = 0; c < kCheckColumns; ++c) {
            kernels.quantize_row(x.data() + c * kIn, kIn, 0, kBlocks, blocks.data() + c * kBlocks, 0);
            kernels.quantize_row(x.data() + c * kIn, kIn, 0, kBlocks, group.data() + c, 8);
        }
    }
};

using CheckResult = std::vector<float>;  ///< [columns of the few, then of the group][16]

CheckResult check_products(DType dtype, const CpuKernels& kernels) {
    const auto i = static_cast<size_t>(dtype);
    CheckInput in(dtype, kernels);
    const bool has_groups = kernels.matmul_groups[i] != nullptr;
    CheckResult y(2 * kCheckColumns * kRows);
    const MatmulArgs args{in.weights.data(), kRows, kIn, nullptr};
    Column columns[kCheckColumns];
    for (int64_t c = 0; c < kCheckColumns; ++c) {
        const void* x = has_groups ? static_cast<const void*>(in.blocks.data() + c * kBlocks)
                                   : static_cast<const void*>(in.x.data() + c * kIn);
        columns[c] = {x, y.data() + c * kRows};
    }
    kernels.matmul[i](args, columns, kCheckColumns, 0, 1);
    if (!has_groups) return y;
    std::vector<PanelBlock> panel(kBlocks);
    std::vector<PanelSums> sums(1);
    kernels.matmul_groups[i](args, {in.group.data(), kCheckColumns, y.data() + kCheckColumns * kRows, kRows, nullptr},
                             0, 1, panel.data(), sums.data());
    return y;
}

}  // namespace

void check_kernels(const CpuKernels& kernels) {
    for (size_t i = 0; i < kDTypeCount; ++i) {
        const auto dtype = static_cast<DType>(i);
        if (!kernels.matmul[i]) continue;
        const CheckResult got = check_products(dtype, kernels), expected = check_products(dtype, scalar_kernels);
        require(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0, ErrorKind::Unsupported,
                "the {} kernel for {} computes wrong results on this processor; choose another instruction set with "
                "--isa, or --isa scalar, and please report this",
                kernels.name, name(dtype));
    }
}

}  // namespace ggmlx
