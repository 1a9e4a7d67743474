#include "src/planner/fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "ggmlx/backend/executor.h"
#include "src/session/step_bytes.h"

namespace llm {
namespace {

using ggmlx::PlacementRule;

/// What of the model is on the card; the rest is on the cpu.
struct Share {
    int64_t n_layers = 0;         ///< the last so many layers are there without their experts
    int64_t n_expert_layers = 0;  ///< of so many layers, the first ones, all experts are there as well
    int64_t n_split_experts = 0;  ///< and so many experts of the layer after them
};

class Fit {
  public:
    Fit(const ModelConfig& config, const Architecture& arch, const ggmlx::TensorSet& weights,
        const EngineOptions& options, std::span<const std::unique_ptr<ggmlx::Backend>> devices, const FitOptions& how)
        : config_(config), arch_(arch), weights_(weights), options_(options), devices_(devices), how_(how) {
        for (const auto& device : devices) {
            names_.push_back(device->name());
            if (device->reaches_host() && !card_) card_ = device.get();
        }
        for (int32_t i = 0; i < weights.size(); ++i)
            if (weights[i].info().role == ggmlx::Role::Expert) n_expert_ = std::max(n_expert_, weights[i].dim(0));
    }

    std::vector<PlacementRule> rules() const {
        if (!card_) return {};
        Share share{.n_layers = layers_wanted(), .n_expert_layers = expert_layers_wanted(), .n_split_experts = 0};
        if (how_.enabled && !fits(share)) share = largest_that_fits(share);
        return rules_of(share);
    }

  private:
    const ModelConfig& config_;
    const Architecture& arch_;
    const ggmlx::TensorSet& weights_;
    const EngineOptions& options_;
    std::span<const std::unique_ptr<ggmlx::Backend>> devices_;
    const FitOptions& how_;
    std::vector<std::string> names_;
    ggmlx::Backend* card_ = nullptr;
    int64_t n_expert_ = 0;

    int64_t layers_wanted() const { return std::min(config_.n_layer, how_.n_gpu_layers.value_or(config_.n_layer)); }
    int64_t expert_layers_wanted() const { return n_expert_ == 0 || how_.cpu_moe ? 0 : config_.n_layer; }

    uint64_t budget() const {
        if (how_.vram) return *how_.vram;
        constexpr uint64_t kMargin = uint64_t{512} << 20;  // for what the driver allocates as it runs
        const uint64_t free = card_->free_bytes();
        return free > kMargin ? free - kMargin : 0;
    }

    /// "(0|1|2)" for layers [first, last).
    static std::string layers(int64_t first, int64_t last) {
        std::string list;
        for (int64_t il = first; il < last; ++il) list += fmt::format("{}{}", il > first ? "|" : "", il);
        return fmt::format("({})", list);
    }

    bool has_layer_tensors(int64_t first, int64_t last, bool experts) const {
        for (int32_t i = 0; i < weights_.size(); ++i)
            for (int64_t il = first; il < last; ++il)
                if (weights_[i].name().starts_with(fmt::format("blk.{}.", il)) &&
                    (!experts || weights_[i].info().role == ggmlx::Role::Expert))
                    return true;
        return false;
    }

    std::vector<PlacementRule> rules_of(const Share& s) const {
        std::vector<std::string> texts;
        const int64_t n = config_.n_layer, first_kept = how_.n_cpu_moe;
        const auto experts_to_cpu = [&](int64_t first, int64_t last) {
            if (first < last && has_layer_tensors(first, last, true))
                texts.push_back(fmt::format("^blk\\.{}\\..*_exps\\.=cpu", layers(first, last)));
        };
        if (s.n_layers < n && has_layer_tensors(0, n - s.n_layers, false))
            texts.push_back(fmt::format("^blk\\.{}\\.=cpu", layers(0, n - s.n_layers)));
        if (n_expert_ > 0) {
            experts_to_cpu(0, std::min(first_kept, n));
            const int64_t split = std::max(first_kept, s.n_expert_layers);
            if (s.n_split_experts > 0 && split < n && has_layer_tensors(split, split + 1, true))
                texts.push_back(
                    fmt::format("^blk\\.{}\\..*_exps\\.@{}-{}=cpu", split, s.n_split_experts, n_expert_ - 1));
            experts_to_cpu(split + (s.n_split_experts > 0 ? 1 : 0), n);
        }
        texts.push_back(fmt::format(".*={}", s.n_layers > 0 ? card_->name() : "cpu"));
        std::vector<PlacementRule> rules;
        for (const std::string& text : texts)
            for (PlacementRule& rule : ggmlx::parse_rules(text)) rules.push_back(std::move(rule));
        return rules;
    }

    /// Bytes of the card that a share takes: weights, states and the arena of the largest step.
    uint64_t bytes_of(const Share& share) const {
        EngineOptions options = options_;
        for (PlacementRule& rule : rules_of(share)) options.rules.push_back(std::move(rule));
        const Blueprint blueprint(config_, arch_, weights_, options, names_);
        std::vector<ggmlx::PlanDevice> plan_devices;
        for (const auto& device : devices_) plan_devices.push_back(ggmlx::plan_device(*device));
        const ggmlx::Plan plan = blueprint.plan(blueprint.largest(), plan_devices);
        const auto card = static_cast<size_t>(std::find(names_.begin(), names_.end(), card_->name()) - names_.begin());
        uint64_t bytes = plan.arena_bytes[card];
        for (int32_t i = 0; i < blueprint.tensors().size(); ++i) {
            const ggmlx::Tensor t = blueprint.tensors()[i];
            const ggmlx::Home& home = blueprint.placement()[t];
            const auto part = stored_bytes(t) / home.devices.size();
            for (ggmlx::DeviceId d : home.devices)
                if (static_cast<size_t>(d) == card) bytes += part;
        }
        return bytes;
    }
    bool fits(const Share& share) const { return bytes_of(share) <= budget(); }

    /// The largest n in [low, high] for which `with(n)` fits, if low does.
    template <class F>
    int64_t largest(int64_t low, int64_t high, F with) const {
        while (low < high) {
            const int64_t middle = low + (high - low + 1) / 2;
            if (fits(with(middle)))
                low = middle;
            else
                high = middle - 1;
        }
        return low;
    }

    Share largest_that_fits(const Share& wanted) const {
        Share share{.n_layers = wanted.n_layers, .n_expert_layers = 0, .n_split_experts = 0};
        if (!fits(share)) {
            share.n_layers = largest(0, wanted.n_layers, [&](int64_t n) { return Share{n, 0, 0}; });
            ggmlx::require(share.n_layers > 0 || how_.n_gpu_layers == 0, ggmlx::ErrorKind::OutOfMemory,
                           "{}: one layer, the cache and the workspace take {} bytes of the {} that may be used; use a "
                           "smaller context (-c) or batch (-ub), more memory (--vram), or -ngl 0",
                           card_->name(), bytes_of({1, 0, 0}), budget());
            return share;
        }
        if (wanted.n_expert_layers == 0) return share;
        share.n_expert_layers = largest(0, wanted.n_expert_layers, [&](int64_t n) {
            return Share{share.n_layers, n, 0};
        });
        if (share.n_expert_layers < config_.n_layer)
            share.n_split_experts = largest(0, n_expert_ - 1, [&](int64_t n) {
                return Share{share.n_layers, share.n_expert_layers, n};
            });
        return share;
    }
};

}  // namespace

std::vector<PlacementRule> fit(const ModelConfig& config, const Architecture& arch, const ggmlx::TensorSet& weights,
                               const EngineOptions& options, std::span<const std::unique_ptr<ggmlx::Backend>> devices,
                               const FitOptions& how) {
    return Fit(config, arch, weights, options, devices, how).rules();
}

}  // namespace llm
