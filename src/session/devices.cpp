#include "src/session/devices.h"

#include <fmt/core.h>

#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/cuda/cuda_backend.h"
#include "ggmlx/backend/reference_backend.h"

namespace llm {

std::vector<std::unique_ptr<ggmlx::Backend>> make_devices(const DeviceOptions& options) {
    ggmlx::CpuOptions cpu;
    cpu.n_threads = options.n_threads;
    cpu.isa = options.isa;
    cpu.pin = options.pin;
    cpu.numa = options.numa;
    cpu.fast_bf16 = options.fast_bf16;
    const int n_cards = options.cards ? ggmlx::find_cuda_cards().count : 0;
    cpu.n_reserved = n_cards > 0 ? 1 : 0;  // for the thread that serves a card
    std::vector<std::unique_ptr<ggmlx::Backend>> devices;
    devices.push_back(ggmlx::make_cpu_backend(cpu));
    for (int i = 0; i < n_cards; ++i) devices.push_back(ggmlx::make_cuda_backend(i));
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
            const auto state = tensors.find(fmt::format("blk.{}.cache_{}", il, part));
            if (!state) continue;
            const bool by_rule = home_of(*state).rules[0] >= 0;
            if (!by_rule) home_of(*state).devices[0] = home_of(tensors.get(layers[il].home)).devices[0];
        }
    for (int32_t i = 0; i < tensors.size(); ++i) {
        constexpr std::string_view kBias = ".bias";
        const std::string_view name = tensors[i].name();
        if (tensors[i].info().role != ggmlx::Role::Expert || !name.ends_with(kBias)) continue;
        const std::string_view stem = name.substr(0, name.size() - kBias.size());
        home_of(tensors[i]) = home_of(tensors.get(fmt::format("{}.weight", stem)));
    }
    return placement;
}

}  // namespace llm
