#pragma once
// Blueprint: everything an engine decides before it touches memory: the tensors with their homes, the cache's layout,
// the sizes of steps and the plan for each. `ggmlx plan` prints one; an engine is one with its bytes in place.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ggmlx/core/tensor.h"
#include "ggmlx/placement/plan.h"
#include "ggmlx/placement/rules.h"
#include "src/arch/arch.h"
#include "src/config.h"
#include "src/kv/paged_cache.h"
#include "src/session/devices.h"

namespace llm {

struct EngineOptions {
    int64_t n_ctx = 0;        ///< longest sequence; 0: the model's context, at most 32768
    int64_t n_sequences = 1;  ///< sessions that can be open at once
    int64_t max_batch = 512;  ///< most tokens of one step; longer batches are cut
    int64_t max_outputs = 0;  ///< most rows of logits of one step; 0: one per sequence
    DeviceOptions devices;
    std::vector<ggmlx::PlacementRule> rules;
    /// Types of the KV cache. Default: f32 if all matrices of the model are f32 (then nothing is rounded that the
    /// checkpoint did not round), else f16. Where one row is both key and value (latent attention) cache_v must be
    /// empty or equal the type of keys.
    std::optional<ggmlx::DType> cache_k, cache_v;
    /// Named values of the graph to keep, see Engine::dumped().
    std::vector<std::string> dumps;
    /// Weights in memory of their own instead of in the mapped file. Default: only where a NUMA policy spreads memory.
    std::optional<bool> resident;
    bool lock_weights = false;  ///< keep weights from being paged out
    /// Called now and then while weights are loaded: bytes done, bytes in all.
    std::function<void(uint64_t, uint64_t)> progress;
};

class Blueprint {
  public:
    /// config and arch must outlive it; weights are described anew. Throws
    /// invalid_argument for a context longer than the model's (naming both) and for sizes below 1; errors of
    /// PagedCache and ggmlx::place.
    Blueprint(const ModelConfig& config, const Architecture& arch, const ggmlx::TensorSet& weights,
              const EngineOptions& options, std::span<const std::string> device_names);

    /// Weights, in the model's order, then states.
    const ggmlx::TensorSet& tensors() const { return tensors_; }
    PagedCache& cache() { return *cache_; }
    const PagedCache& cache() const { return *cache_; }
    const ggmlx::Placement& placement() const { return placement_; }
    int64_t n_ctx() const { return n_ctx_; }
    /// The largest step; every other fits into its memory.
    const StepShape& largest() const { return largest_; }
    const std::vector<std::string>& dumps() const { return dumps_; }
    /// The shape that a step of so many tokens and outputs is padded to.
    StepShape padded(int64_t n_tokens, int64_t n_outputs) const;

    /// The graph of a step, with outputs "logits" and every name of `dumps`. Throws invalid_argument for a dump that is
    /// no value of the graph, with the nearest names.
    std::shared_ptr<const ggmlx::Graph> graph(const StepShape& shape) const;
    ggmlx::Plan plan(const StepShape& shape, std::vector<ggmlx::PlanDevice> devices) const;

  private:
    const ModelConfig& config_;
    const Architecture& arch_;
    int64_t n_ctx_ = 0;
    StepShape largest_;
    std::vector<std::string> dumps_;
    ggmlx::TensorSet tensors_;
    std::unique_ptr<PagedCache> cache_;
    ggmlx::Placement placement_;
};

}  // namespace llm
