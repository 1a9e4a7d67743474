#pragma once
// Engine: a batch of (session, new tokens) -> logits. It owns the devices, the weights on them, the KV cache and one
// plan per step size. All memory is reserved when it is made.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ggmlx/backend/executor.h"
#include "src/model.h"
#include "src/session/blueprint.h"
#include "src/session/kernel_use.h"
#include "src/session/step.h"

namespace llm {

class Session;

/// New tokens of one session.
struct BatchItem {
    Session* session = nullptr;
    std::span<const TokenId> ids;  ///< at least one
    int64_t n_outputs = 1;         ///< of how many of the last tokens logits are wanted: 0 … ids.size()
};

/// Rows of logits, in the order of the batch's items and, within one, of its tokens.
struct Logits {
    int64_t n_vocab = 0;
    std::vector<float> values;  ///< [n_rows, n_vocab]

    int64_t n_rows() const { return n_vocab > 0 ? static_cast<int64_t>(values.size()) / n_vocab : 0; }
    std::span<const float> row(int64_t i) const {
        return std::span(values).subspan(static_cast<size_t>(i * n_vocab), static_cast<size_t>(n_vocab));
    }
};

/// A kept value of the graph, rows of all steps of one eval() together, without padding.
struct DumpedTensor {
    ggmlx::DType dtype = ggmlx::DType::F32;  ///< f32 or i32
    ggmlx::Shape shape;
    std::vector<std::byte> bytes;
};

struct DeviceUse {
    std::string name, description;
    uint64_t weight_bytes = 0;
    uint64_t cache_bytes = 0;
    uint64_t workspace_bytes = 0;  ///< intermediate values of the largest step
};

/// Used by one thread at a time. Sessions must end before it does.
class Engine {
  public:
    /// Loads the weights and reserves all memory. Throws out_of_memory, corrupt_file, and what Blueprint throws.
    Engine(const Model& model, const EngineOptions& options) : Engine(model, options, make_devices(options.devices)) {}
    /// The same on devices that make_devices gave.
    Engine(const Model& model, const EngineOptions& options, std::vector<std::unique_ptr<ggmlx::Backend>> devices);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Appends each item's tokens to its session and returns the wanted logits. The batch runs in steps of at most
    /// max_batch tokens, all its sessions side by side; the logits of a session do not depend on the others, nor on how
    /// its tokens are cut. Throws invalid_argument (an id outside the vocabulary, no tokens, a session twice or of
    /// another engine), out_of_memory (context full) and device errors; the sessions are then as before.
    Logits eval(std::span<const BatchItem> batch);
    Logits eval(const BatchItem& item) { return eval(std::span(&item, 1)); }
    /// A value named in EngineOptions::dumps, of the last eval().
    const DumpedTensor& dumped(std::string_view name) const;

    const Model& model() const { return model_; }
    const Blueprint& blueprint() const { return blueprint_; }
    int64_t n_ctx() const { return blueprint_.n_ctx(); }
    int64_t max_batch() const { return blueprint_.largest().n_tokens; }
    /// What each device holds.
    std::vector<DeviceUse> device_use() const;
    /// What people should know of the plan: ops moved for lack of support, weights copied each step …
    const std::vector<std::string>& notes() const { return notes_; }
    /// Bytes of the arenas of all devices.
    uint64_t workspace_bytes() const;
    /// Backend::read_rate of every device, in their order, over memory larger than its caches; 0 for those that hold
    /// nothing, but never for the first, where everything goes that no rule moves.
    std::vector<double> read_rates() const;
    /// The same rate over weights in the mapped file; 0 if there are none, or too few to tell.
    double mapped_read_rate() const;
    /// One line about that device and its memory: "cpu: AMD EPYC, avx2, 2 threads (2 physical cores, pinned), numa off
    /// (one node); weights mapped from the file".
    std::string start_line() const;
    /// Which kernels multiply the weights.
    const std::vector<KernelUse>& kernel_use() const { return kernel_use_; }

  private:
    friend class Session;
    const Model& model_;
    std::vector<std::unique_ptr<ggmlx::Backend>> devices_;
    Blueprint blueprint_;
    std::unique_ptr<ggmlx::DeviceWeights> weights_;
    std::unique_ptr<ggmlx::Executor> executor_;
    std::map<StepShape, ggmlx::Program> programs_;
    std::map<std::string, DumpedTensor, std::less<>> dumped_;
    std::vector<std::string> notes_;
    std::vector<KernelUse> kernel_use_;
    std::string whole_experts_;  ///< which experts are not dealt out to memory nodes that could be, and why

    PagedCache& cache() { return blueprint_.cache(); }
    void check(std::span<const BatchItem> batch) const;
    ggmlx::Program& program(const StepShape& shape);
    void copy_blocks();
    /// rows: logits by item of the batch.
    void run_step(const Step& step, std::span<const BatchItem> batch, std::vector<std::vector<float>>& rows);
    void collect_logits(const ggmlx::Program& program, const StepShape& shape, const Step& step,
                        std::vector<std::vector<float>>& rows) const;
    void collect_dumps(const ggmlx::Program& program, const StepShape& shape, const Step& step);
};

}  // namespace llm
