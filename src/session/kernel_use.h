#pragma once
// Which kernels multiply a model's weights, counted from its plan: people should see at start whether the fast ones do.

#include <string>
#include <vector>

#include "ggmlx/backend/backend.h"
#include "ggmlx/placement/plan.h"

namespace llm {

/// Weights of one type on one device.
struct KernelUse {
    ggmlx::DeviceId device = 0;
    ggmlx::DType dtype = ggmlx::DType::F32;
    int64_t n_tensors = 0;
    uint64_t size_bytes = 0;  ///< of split experts those that live there

    std::string device_name{};        ///< set by Engine::kernel_use()
    ggmlx::ProductKernels kernels{};  ///< likewise
};

/// The weights that the plan's products read, each counted once on every device that multiplies with it; devices in
/// their order, then the most bytes first. Tables in which rows are only looked up are no part of it.
std::vector<KernelUse> count_kernel_use(const ggmlx::Plan& plan, const ggmlx::Placement& placement);

}  // namespace llm
