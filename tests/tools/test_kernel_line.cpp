// The line at start about kernels.

#include "tools/kernel_line.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

using ggmlx::DType;

TEST(KernelLine, NamesTypesKernelsNumbersBytesAndReasons) {
    std::vector<llm::KernelUse> uses(2);
    uses[0] = {0, DType::MXFP4, 96, uint64_t{3} << 29, "cpu", {"avx512 int8", ""}};
    uses[1] = {0, DType::F32, 1, 2048, "cpu", {"avx512 float", "f32 has no int8 products"}};
    EXPECT_EQ(kernel_line(uses),
              "kernels: mxfp4 with avx512 int8, 96 tensors, 1.50 GiB; f32 with avx512 float, 1 tensor, 2.00 KiB (f32 "
              "has no int8 products)");
    uses[1].device = 1;
    uses[1].device_name = "ref0";
    EXPECT_EQ(kernel_line(uses).rfind("kernels: cpu mxfp4 with", 0), 0u);
    EXPECT_NE(kernel_line(uses).find("; ref0 f32 with"), std::string::npos);
    EXPECT_EQ(kernel_line({}), "");
}

}  // namespace
}  // namespace cli
