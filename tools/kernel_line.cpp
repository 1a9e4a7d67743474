#include "tools/kernel_line.h"

#include <fmt/core.h>

#include "ggmlx/core/dtype.h"
#include "tools/args.h"

namespace cli {

std::string kernel_line(std::span<const llm::KernelUse> uses) {
    std::string line;
    for (const llm::KernelUse& use : uses) {
        const bool names_device = uses.front().device != uses.back().device;
        line += fmt::format("{}{}{} with {}, {} tensor{}, {}{}", line.empty() ? "kernels: " : "; ",
                            names_device ? use.device_name + " " : "", ggmlx::name(use.dtype), use.kernels.family,
                            use.n_tensors, use.n_tensors == 1 ? "" : "s", human_bytes(use.size_bytes),
                            use.kernels.remark.empty() ? "" : fmt::format(" ({})", use.kernels.remark));
    }
    return line;
}

}  // namespace cli
