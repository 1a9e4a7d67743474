// The check at start: passes for every instruction set, and finds a kernel that is wrong in one value.

#include "ggmlx/backend/cpu/self_check.h"

#include <gtest/gtest.h>

#include "ggmlx/backend/cpu/dispatch.h"
#include "ggmlx/core/error.h"

namespace ggmlx {
namespace {

void wrong_matmul(const MatmulArgs& args, const Column* columns, int n, int64_t begin, int64_t end) noexcept {
    scalar_kernels.matmul[static_cast<size_t>(DType::Q4_0)](args, columns, n, begin, end);
    columns[1].y[7] += 1.0f;
}
void wrong_groups(const MatmulArgs& args, const ColumnGroups& columns, int64_t begin, int64_t end, PanelBlock* panels,
                  PanelSums* sums) noexcept {
    scalar_kernels.matmul_groups[static_cast<size_t>(DType::MXFP4)](args, columns, begin, end, panels, sums);
    columns.y[2] = -columns.y[2];
}

TEST(SelfCheck, PassesForEveryInstructionSet) {
    for (const CpuKernels* kernels : supported_kernels()) EXPECT_NO_THROW(check_kernels(*kernels)) << kernels->name;
}

TEST(SelfCheck, NamesTheTypeOfAWrongKernel) {
    CpuKernels broken = scalar_kernels;
    broken.matmul[static_cast<size_t>(DType::Q4_0)] = wrong_matmul;
    try {
        check_kernels(broken);
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("kernel for q4_0"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("--isa"), std::string::npos) << error.what();
    }
    broken = scalar_kernels;
    broken.matmul_groups[static_cast<size_t>(DType::MXFP4)] = wrong_groups;
    EXPECT_THROW(check_kernels(broken), Error);
}

}  // namespace
}  // namespace ggmlx
