#pragma once
// The test model of placement/moe_model.h on devices, step by step.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/executor.h"
#include "ggmlx/backend/reference_backend.h"
#include "ggmlx/placement/moe_model.h"
#include "ggmlx/quant/quantize.h"

namespace ggmlx::test {

/// Weights of the test model in stored form, made once per type.
class StoredWeights {
  public:
    explicit StoredWeights(const TensorSet& set) {
        std::mt19937 random(3);
        std::normal_distribution<float> normal(0.0f, 0.15f);
        for (int32_t id = 0; id < set.size(); ++id) {
            const Tensor t = set[id];
            std::vector<float> values(static_cast<size_t>(t.shape().n_elements()));
            for (float& v : values) v = normal(random) + (t.info().role == Role::Norm ? 1.0f : 0.0f);
            bytes_[t.name()] = stored(t, values);
        }
    }
    std::span<const std::byte> operator()(Tensor t) const { return bytes_.at(t.name()); }

  private:
    std::map<std::string, std::vector<std::byte>> bytes_;

    static std::vector<std::byte> stored(Tensor t, const std::vector<float>& values) {
        std::vector<std::byte> all(static_cast<size_t>(storage_bytes(t.dtype(), t.shape())));
        const int64_t n_out = t.shape().rank() > 1 ? t.dim(-2) : 1, n_in = t.dim(-1);
        const auto slice = static_cast<size_t>(slice_bytes(t.dtype(), t.shape()));
        for (size_t s = 0; s * slice < all.size(); ++s)
            quantize_matrix(t.dtype(), values.data() + static_cast<int64_t>(s) * n_out * n_in, n_out, n_in,
                            std::span(all).subspan(s * slice, slice));
        return all;
    }
};

/// One model on ref0, ref1, ref2 under given rules, or on other devices in the place of the first two; steps are run
/// with feed().
class Runner {
  public:
    Runner(DType type, std::string_view rules, std::unique_ptr<Backend> first = make_reference_backend("ref0"),
           std::unique_ptr<Backend> second = make_reference_backend("ref1")) {
        add_moe_tensors(set_, type);
        backends_.push_back(std::move(first));
        backends_.push_back(std::move(second));
        backends_.push_back(make_reference_backend("ref2"));
        std::vector<Backend*> devices;
        std::vector<std::string> names;
        for (auto& b : backends_) devices.push_back(b.get()), names.push_back(b->name());
        const auto parsed = rules.empty() ? std::vector<PlacementRule>{} : parse_rules(rules);
        weights_ = std::make_unique<DeviceWeights>(set_, place(set_, parsed, names, 0), devices);
        const StoredWeights source(set_);
        whole_experts_ = weights_->deal_out_experts(*moe_graph(set_, 1));
        weights_->load([&](Tensor t) { return source(t); });
        weights_->allocate_states();
        executor_ = std::make_unique<Executor>(*weights_);
    }

    Program program(int64_t n_tokens) {
        return executor_->prepare(make_plan({.graph = moe_graph(set_, n_tokens),
                                             .placement = &weights_->placement(),
                                             .devices = executor_->plan_devices(),
                                             .fallback_device = 0}));
    }

    std::vector<float> feed(Program& program, const std::vector<int32_t>& ids, int32_t first_pos) {
        std::vector<int32_t> positions, sequence(ids.size(), 0), table = {1, 2, 0};
        std::vector<int32_t> slots;
        for (size_t i = 0; i < ids.size(); ++i) {
            const int32_t p = first_pos + static_cast<int32_t>(i);
            positions.push_back(p);
            slots.push_back(table[static_cast<size_t>(p / kBlockLen)] * static_cast<int32_t>(kBlockLen) +
                            p % static_cast<int32_t>(kBlockLen));
        }
        auto set = [&](const char* name, const std::vector<int32_t>& v) {
            executor_->set_input(program, name, std::as_bytes(std::span(v)));
        };
        set("ids", ids), set("positions", positions), set("sequence", sequence), set("slots", slots),
            set("block_table", table);
        executor_->run(program);
        std::vector<float> logits(ids.size() * kVocab);
        executor_->read_output(program, "logits", std::as_writable_bytes(std::span(logits)));
        return logits;
    }

    std::vector<float> two_steps() {
        auto prompt = program(5), next = program(1);
        auto logits = feed(prompt, {3, 1, 4, 1, 5}, 0);
        for (int32_t p = 5; p < 9; ++p) {
            const auto more = feed(next, {p * 3}, p);
            logits.insert(logits.end(), more.begin(), more.end());
        }
        return logits;
    }

    std::vector<Tensor> layer_experts(int il) const {
        const std::string blk = "blk." + std::to_string(il) + ".";
        return {set_.get(blk + "ffn_gate_exps.weight"), set_.get(blk + "ffn_up_exps.weight"),
                set_.get(blk + "ffn_down_exps.weight")};
    }
    /// Exchanges the homes of two experts of each of the two layers: a with b(layer).
    template <class F>
    void swap_experts(int64_t a, F b) {
        for (int il : {0, 1}) weights_->swap_experts(layer_experts(il), a, b(il));
    }
    DeviceWeights& weights() { return *weights_; }
    Executor& executor() { return *executor_; }
    const TensorSet& set() const { return set_; }
    const std::string& whole_experts() const { return whole_experts_; }

  private:
    TensorSet set_;
    std::vector<std::unique_ptr<Backend>> backends_;
    std::unique_ptr<DeviceWeights> weights_;
    std::unique_ptr<Executor> executor_;
    std::string whole_experts_;
};

/// Another backend's memory and kernels; subclasses change how it runs.
class Wrapped : public Backend {
  public:
    explicit Wrapped(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}
    const std::string& name() const override { return inner_->name(); }
    std::string description() const override { return inner_->description(); }
    uint64_t free_bytes() const override { return inner_->free_bytes(); }
    bool supports(const Node& n) const override { return inner_->supports(n); }
    size_t scratch_bytes(const Node& n) const override { return inner_->scratch_bytes(n); }
    std::shared_ptr<std::byte> alloc(size_t n) override { return inner_->alloc(n); }
    void upload(std::byte* d, const void* h, size_t n) override { inner_->upload(d, h, n); }
    void download(void* h, const std::byte* d, size_t n) override { inner_->download(h, d, n); }
    bool reads_host_memory() const override { return false; }
    void run(SegmentSource& source) override { inner_->run(source); }

  private:
    std::unique_ptr<Backend> inner_;
};

/// The cpu with experts dealt out to so many nodes, which are all the same one.
inline std::unique_ptr<Backend> sharding_cpu(int n_shards) {
    const std::vector<int> nodes(static_cast<size_t>(n_shards), 0);
    return make_cpu_backend({.n_threads = 2, .pin = false}, {NumaPolicy::Shard, nodes, "a test", n_shards});
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace ggmlx::test
