#include "src/session/devices.h"

#include <fmt/core.h>

#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/reference_backend.h"

namespace llm {

std::vector<std::unique_ptr<ggmlx::Backend>> make_devices(const DeviceOptions& options) {
    ggmlx::CpuOptions cpu;
    cpu.n_threads = options.n_threads;
    cpu.isa = options.isa;
    std::vector<std::unique_ptr<ggmlx::Backend>> devices;
    devices.push_back(ggmlx::make_cpu_backend(cpu));
    devices.push_back(ggmlx::make_reference_backend("ref0"));
    devices.push_back(ggmlx::make_reference_backend("ref1"));
    return devices;
}

ggmlx::Placement place_model(const ggmlx::TensorSet& tensors, std::span<const KvLayer> layers,
                             std::span<const ggmlx::PlacementRule> rules, std::span<const std::string> device_names) {
    ggmlx::Placement placement = ggmlx::place(tensors, rules, device_names, 0);
    const auto home_of = [&](ggmlx::Tensor t) -> ggmlx::Home& {
        return placement.homes[static_cast<size_t>(t.info().id)];
    };
    for (size_t il = 0; il < layers.size(); ++il)
        for (const char* part : {"k", "v"}) {
            ggmlx::Home& home = home_of(tensors.get(fmt::format("blk.{}.cache_{}", il, part)));
            const bool by_rule = home.rules[0] >= 0;
            if (!by_rule) home.devices[0] = home_of(tensors.get(layers[il].home)).devices[0];
        }
    return placement;
}

}  // namespace llm
