#include "ggmlx/backend/cpu/self_check.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "ggmlx/core/dtype.h"
#include "ggmlx/core/error.h"
#include "ggmlx/quant/blocks.h"

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

float value_of(DType dtype, const std::vector<std::byte>& weights, int64_t row, int64_t k) {
    if (!is_block(dtype)) {
        uint16_t bits;
        std::memcpy(&bits, weights.data() + (row * kIn + k) * 2, sizeof bits);
        return dtype == DType::F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
    }
    return with_tile(dtype, [&]<class Tile>(const Tile*) {
        const int64_t len = info(dtype).block_len;
        const auto* tiles = reinterpret_cast<const Tile*>(weights.data());
        return value(tiles[k / len], static_cast<int>(row), static_cast<int>(k % len));
    });
}

/// Products in bf16 round weights, with 8 bits, and sums. The activations, whole numbers up to 127, are bf16.
bool bf16_products_are_right(DType dtype, const CpuKernels& kernels) {
    CheckInput in(dtype, kernels);
    std::vector<Bf16Block> group(kBlocks * kGroupColumns);
    for (int64_t c = 0; c < kCheckColumns; ++c)
        kernels.bf16.round_row(in.x.data() + c * kIn, kIn, 0, kBlocks, group.data() + c, 8);
    std::vector<float> y(kCheckColumns * kRows);
    std::vector<Bf16Panel> panel(kBlocks);
    const auto* columns = reinterpret_cast<const ActivationBlock*>(group.data());
    kernels.bf16.matmul[static_cast<size_t>(dtype)]({in.weights.data(), kRows, kIn, nullptr},
                                                    {columns, kCheckColumns, y.data(), kRows, nullptr}, 0, 1,
                                                    panel.data());
    for (int64_t c = 0; c < kCheckColumns; ++c)
        for (int64_t r = 0; r < kRows; ++r) {
            constexpr double kTolerance = 0x1p-9 + kIn * 0x1p-23;
            double sum = 0, magnitude = 0;
            for (int64_t k = 0; k < kIn; ++k) {
                const double term = static_cast<double>(value_of(dtype, in.weights, r, k)) *
                                    static_cast<double>(in.x[static_cast<size_t>(c * kIn + k)]);
                sum += term;
                magnitude += std::abs(term);
            }
            const double got = y[static_cast<size_t>(c * kRows + r)];
            if (!(std::abs(got - sum) <= kTolerance * magnitude)) return false;
        }
    return true;
}

[[noreturn]] void fail_check(const char* kernels, DType dtype, std::string_view instead) {
    fail(ErrorKind::Unsupported,
         "the {} kernel for {} computes wrong results on this processor; {}, and please report this", kernels,
         name(dtype), instead);
}

}  // namespace

void check_kernels(const CpuKernels& kernels) {
    for (size_t i = 0; i < kDTypeCount; ++i) {
        const auto dtype = static_cast<DType>(i);
        if (!kernels.matmul[i]) continue;
        const CheckResult got = check_products(dtype, kernels), expected = check_products(dtype, scalar_kernels);
        if (std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) != 0)
            fail_check(kernels.name, dtype, "choose another instruction set with --isa, or --isa scalar");
        if (kernels.bf16.matmul[i] && !bf16_products_are_right(dtype, kernels))
            fail_check(kernels.bf16.name, dtype, "leave --fast-bf16 out");
    }
}

}  // namespace ggmlx
