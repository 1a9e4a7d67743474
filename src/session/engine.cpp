#include "src/session/engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "ggmlx/backend/host_memory.h"
#include "ggmlx/core/error.h"
#include "src/session/random_weights.h"
#include "src/session/session.h"

namespace llm {

using ggmlx::DeviceId;
using ggmlx::ErrorKind;
using ggmlx::require;
using ggmlx::Tensor;

namespace {

std::vector<std::string> names_of(const std::vector<std::unique_ptr<ggmlx::Backend>>& devices) {
    std::vector<std::string> names;
    for (const auto& d : devices) names.push_back(d->name());
    return names;
}

/// Where weights lie and in what pages, for people.
std::string describe_memory(const ggmlx::HostWeights& weights, bool spread) {
    if (weights.mapped_bytes > weights.resident_bytes)
        return spread ? "mapped from the file, not spread" : "mapped from the file";
    constexpr uint64_t kWorthAPage = uint64_t{4} << 20;
    if (weights.resident_bytes < kWorthAPage) return "in memory of their own";
    if (!ggmlx::gives_huge_pages()) return "in 4 KB pages: this system gives no others";
    const uint64_t huge = std::min(ggmlx::huge_page_bytes(), weights.resident_bytes);
    return fmt::format("in memory of their own, {} % in 2 MB pages", 100 * huge / weights.resident_bytes);
}

/// What became of experts where the device deals them out, for people. whole: as DeviceWeights::deal_out_experts says.
std::string describe_shards(const ggmlx::HostWeights& weights, int n_shards, const std::string& whole) {
    if (n_shards == 1 || weights.mapped_bytes > weights.resident_bytes) return "";
    if (weights.sharded_bytes == 0) return whole.empty() ? "; no experts to deal out" : "; experts: " + whole;
    return fmt::format("; experts dealt out to {} nodes{}{}", n_shards, whole.empty() ? "" : ", but ", whole);
}

/// The inputs of a step that every architecture reads.
StepInputs common_inputs(const Step& step, const StepShape& shape, std::span<const BatchItem> batch,
                         std::span<const SequenceSpan> spans) {
    std::vector<int32_t> ids, positions, sequence, outputs;
    for (size_t row = 0; row < step.parts.size(); ++row) {
        const StepPart& part = step.parts[row];
        for (int64_t t = 0; t < part.n_tokens; ++t) {
            if (t >= part.n_tokens - part.n_outputs) outputs.push_back(static_cast<int32_t>(ids.size()));
            ids.push_back(batch[part.item].ids[static_cast<size_t>(part.first + t)]);
            positions.push_back(static_cast<int32_t>(spans[row].first_pos + t));
            sequence.push_back(static_cast<int32_t>(row));
        }
    }
    const auto n_tokens = static_cast<size_t>(shape.n_tokens);
    ids.resize(n_tokens, -1);
    positions.resize(n_tokens, 0);
    sequence.resize(n_tokens, -1);
    outputs.resize(static_cast<size_t>(shape.n_outputs), -1);
    StepInputs inputs;
    inputs["ids"] = std::move(ids);
    inputs["positions"] = std::move(positions);
    inputs["sequence"] = std::move(sequence);
    inputs["outputs"] = std::move(outputs);
    return inputs;
}

}  // namespace

Engine::Engine(const Model& model, const EngineOptions& options, std::vector<std::unique_ptr<ggmlx::Backend>> devices)
    : model_(model),
      devices_(std::move(devices)),
      blueprint_(model.config(), model.arch(), model.weights(), options, names_of(devices_)) {
    std::vector<ggmlx::Backend*> backends;
    for (const auto& d : devices_) backends.push_back(d.get());
    weights_ = std::make_unique<ggmlx::DeviceWeights>(blueprint_.tensors(), blueprint_.placement(), backends);
    if (devices_.front()->n_shards() > 1)
        whole_experts_ = weights_->deal_out_experts(*blueprint_.graph(blueprint_.largest()));
    if (model.has_file())
        weights_->load(model.file(), {.resident = options.resident.value_or(devices_.front()->chooses_nodes()),
                                      .lock = options.lock_weights,
                                      .progress = options.progress});
    else
        weights_->load(random_weights());
    weights_->allocate_states();
    executor_ = std::make_unique<ggmlx::Executor>(*weights_);
    const ggmlx::Plan& largest = program(blueprint_.largest()).plan();
    notes_ = largest.notes;
    kernel_use_ = count_kernel_use(largest, blueprint_.placement());
    for (KernelUse& use : kernel_use_) {
        const ggmlx::Backend& device = *devices_[static_cast<size_t>(use.device)];
        use.device_name = device.name();
        use.kernels = device.product_kernels(use.dtype);
    }
    if (const std::string problem = weights_->host_weights().lock_problem; !problem.empty())
        notes_.push_back("--mlock: the weights can be paged out: " + problem);
}

Engine::~Engine() = default;

ggmlx::Program& Engine::program(const StepShape& shape) {
    auto it = programs_.find(shape);
    if (it == programs_.end())
        it = programs_.emplace(shape, executor_->prepare(blueprint_.plan(shape, executor_->plan_devices()))).first;
    return it->second;
}

void Engine::check(std::span<const BatchItem> batch) const {
    for (size_t i = 0; i < batch.size(); ++i) {
        const BatchItem& item = batch[i];
        require(item.session != nullptr && item.session->engine_ == this, ErrorKind::InvalidArgument,
                "eval: item {} has no session of this engine", i);
        for (size_t j = 0; j < i; ++j)
            require(batch[j].session != item.session, ErrorKind::InvalidArgument,
                    "eval: items {} and {} are the same session", j, i);
        require(!item.ids.empty(), ErrorKind::InvalidArgument, "eval: item {} has no tokens", i);
        require(item.n_outputs >= 0 && item.n_outputs <= static_cast<int64_t>(item.ids.size()),
                ErrorKind::InvalidArgument, "eval: {} rows of logits wanted of {} tokens", item.n_outputs,
                item.ids.size());
        for (TokenId id : item.ids)
            require(id >= 0 && id < model_.config().n_vocab, ErrorKind::InvalidArgument,
                    "token id {} is outside the vocabulary of {}", id, model_.config().n_vocab);
    }
}

Logits Engine::eval(std::span<const BatchItem> batch) {
    check(batch);
    dumped_.clear();
    Logits logits;
    logits.n_vocab = model_.config().n_vocab;
    std::vector<StepItem> items;
    for (const BatchItem& b : batch) items.push_back({static_cast<int64_t>(b.ids.size()), b.n_outputs});
    try {
        for (const BatchItem& b : batch) cache().extend(b.session->sequence_, static_cast<int64_t>(b.ids.size()));
        copy_blocks();
        const StepShape& most = blueprint_.largest();
        std::vector<std::vector<float>> rows(batch.size());
        for (const Step& step : cut_into_steps(items, {most.n_tokens, most.n_outputs, most.n_sequences}))
            run_step(step, batch, rows);
        for (const auto& r : rows) logits.values.insert(logits.values.end(), r.begin(), r.end());
    } catch (...) {
        for (const BatchItem& b : batch) cache().truncate(b.session->sequence_, b.session->length());
        throw;
    }
    for (const BatchItem& b : batch) b.session->ids_.insert(b.session->ids_.end(), b.ids.begin(), b.ids.end());
    return logits;
}

void Engine::copy_blocks() {
    std::vector<std::byte> block;
    for (const BlockCopy& copy : cache().take_copies())
        for (Tensor state : cache().states()) {
            const DeviceId device = blueprint_.placement()[state].devices[0];
            ggmlx::Backend& backend = *devices_[static_cast<size_t>(device)];
            std::byte* data = weights_->view(state, device).data;
            block.resize(static_cast<size_t>(ggmlx::storage_bytes(state.dtype(), state.shape()) / state.dim(0)));
            const auto stride = static_cast<std::ptrdiff_t>(block.size());
            backend.download(block.data(), data + copy.from * stride, block.size());
            backend.upload(data + copy.to * stride, block.data(), block.size());
        }
}

void Engine::run_step(const Step& step, std::span<const BatchItem> batch, std::vector<std::vector<float>>& rows) {
    const StepShape shape = blueprint_.padded(step.n_tokens, step.n_outputs);
    std::vector<SequenceSpan> spans;
    for (const StepPart& part : step.parts) {
        const Session& session = *batch[part.item].session;
        spans.push_back({session.sequence_, session.length() + part.first, part.n_tokens});
    }
    StepInputs inputs = common_inputs(step, shape, batch, spans);
    cache().fill_inputs(spans, shape, inputs);
    ggmlx::Program& p = program(shape);
    for (const auto& [name, values] : inputs) executor_->set_input(p, name, std::as_bytes(std::span(values)));
    executor_->run(p, [&](int64_t row) {
        for (const StepPart& part : step.parts) {
            if (row >= part.n_tokens) {
                row -= part.n_tokens;
                continue;
            }
            const BatchItem& item = batch[part.item];
            return fmt::format("token {} at position {}", item.ids[static_cast<size_t>(part.first + row)],
                               item.session->length() + part.first + row);
        }
        return std::string();
    });
    collect_logits(p, shape, step, rows);
    collect_dumps(p, shape, step);
}

void Engine::collect_logits(const ggmlx::Program& program, const StepShape& shape, const Step& step,
                            std::vector<std::vector<float>>& rows) const {
    if (step.n_outputs == 0) return;
    const auto n_vocab = static_cast<size_t>(model_.config().n_vocab);
    std::vector<float> all(static_cast<size_t>(shape.n_outputs) * n_vocab);
    executor_->read_output(program, "logits", std::as_writable_bytes(std::span(all)));
    auto from = all.begin();
    for (const StepPart& part : step.parts) {
        const auto to = from + static_cast<std::ptrdiff_t>(static_cast<size_t>(part.n_outputs) * n_vocab);
        rows[part.item].insert(rows[part.item].end(), from, to);
        from = to;
    }
}

void Engine::collect_dumps(const ggmlx::Program& program, const StepShape& shape, const Step& step) {
    for (const auto& output : program.plan().graph->outputs()) {
        const auto& wanted = blueprint_.dumps();
        if (std::find(wanted.begin(), wanted.end(), output.name) == wanted.end()) continue;
        const Tensor t = output.tensor;
        const bool by_token = t.dim(0) == shape.n_tokens;
        const int64_t n_rows = by_token ? step.n_tokens : t.dim(0) == shape.n_outputs ? step.n_outputs : t.dim(0);
        std::vector<std::byte> all(static_cast<size_t>(ggmlx::storage_bytes(t.dtype(), t.shape())));
        executor_->read_output(program, output.name, all);
        const size_t row_bytes = all.size() / static_cast<size_t>(t.dim(0));

        DumpedTensor& dump = dumped_[output.name];
        const int64_t rows_before = dump.bytes.empty() ? 0 : dump.shape[0];
        std::vector<int64_t> dims(t.shape().dims().begin(), t.shape().dims().end());
        dims[0] = rows_before + n_rows;
        dump.dtype = t.dtype();
        dump.shape = ggmlx::Shape(dims);
        dump.bytes.insert(dump.bytes.end(), all.begin(),
                          all.begin() + static_cast<std::ptrdiff_t>(row_bytes * static_cast<size_t>(n_rows)));
    }
}

const DumpedTensor& Engine::dumped(std::string_view name) const {
    const auto it = dumped_.find(name);
    require(it != dumped_.end(), ErrorKind::InvalidArgument, "no value {} was kept by the last evaluation", name);
    return it->second;
}

std::string Engine::start_line() const {
    const ggmlx::Backend& device = *devices_.front();
    const ggmlx::HostWeights weights = weights_->host_weights();
    return fmt::format("{}: {}; weights {}{}", device.name(), device.description(),
                       describe_memory(weights, device.chooses_nodes()),
                       describe_shards(weights, device.n_shards(), whole_experts_));
}

namespace {

double rate_of(ggmlx::Backend& device) {
    constexpr uint64_t kMost = uint64_t{2} << 30;
    return device.read_rate(static_cast<size_t>(std::min(kMost, device.free_bytes() / 4)));
}

}  // namespace

std::vector<double> Engine::read_rates() const {
    std::vector<double> rates;
    for (size_t d = 0; d < devices_.size(); ++d) {
        const auto id = static_cast<DeviceId>(d);
        const bool holds = d == 0 || weights_->weight_bytes(id) + weights_->state_bytes(id) > 0;
        rates.push_back(holds ? rate_of(*devices_[d]) : 0);
    }
    return rates;
}

double Engine::mapped_read_rate() const {
    constexpr uint64_t kFewest = uint64_t{256} << 20, kMost = uint64_t{1} << 30;  // beyond any cache
    if (weights_->host_weights().mapped_bytes < kFewest) return 0;
    const ggmlx::ModelFile& file = model_.file();
    const std::byte* begin = file.stored_bytes(file.tensors().front()).data();
    const auto last = file.stored_bytes(file.tensors().back());
    const auto size = static_cast<uint64_t>(last.data() + last.size() - begin);
    return devices_.front()->read_rate_of({begin, static_cast<size_t>(std::min(kMost, size))});
}

uint64_t Engine::workspace_bytes() const {
    uint64_t total = 0;
    for (size_t d = 0; d < devices_.size(); ++d) total += executor_->arena_bytes(static_cast<DeviceId>(d));
    return total;
}

std::vector<DeviceUse> Engine::device_use() const {
    std::vector<DeviceUse> uses;
    for (size_t i = 0; i < devices_.size(); ++i) {
        const auto d = static_cast<DeviceId>(i);
        uses.push_back({devices_[i]->name(), devices_[i]->description(), weights_->weight_bytes(d),
                        weights_->state_bytes(d), executor_->arena_bytes(d)});
    }
    return uses;
}

}  // namespace llm
