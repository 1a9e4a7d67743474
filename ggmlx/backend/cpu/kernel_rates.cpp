#include "ggmlx/backend/cpu/kernel_rates.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "ggmlx/backend/cpu/dispatch.h"
#include "ggmlx/backend/cpu/threads.h"
#include "ggmlx/backend/cpu/topology.h"
#include "ggmlx/core/parallel.h"
#include "ggmlx/graph/ops.h"

namespace ggmlx {
namespace {

using RatesClock = std::chrono::steady_clock;

/// The shortest of several runs of f, in seconds.
template <class F>
double best_seconds(F f) {
    constexpr auto kTime = std::chrono::milliseconds(100);
    constexpr int kLeast = 3;
    double best = 0;
    const auto begin = RatesClock::now();
    for (int i = 0; i < kLeast || RatesClock::now() - begin < kTime; ++i) {
        const auto start = RatesClock::now();
        f();
        const double seconds = std::chrono::duration<double>(RatesClock::now() - start).count();
        if (i == 0 || seconds < best) best = seconds;
    }
    return best;
}

/// Hands out one call, then nothing.
class OneCall : public SegmentSource {
  public:
    explicit OneCall(OpCall& call) : call_(&call) {}
    std::span<OpCall* const> next() noexcept override {
        return std::exchange(given_, true) ? std::span<OpCall* const>{} : std::span<OpCall* const>(&call_, 1);
    }

  private:
    OpCall* call_;
    bool given_ = false;
};

/// A matrix and its columns, ready to be multiplied again and again.
class OneProduct {
  public:
    OneProduct(Backend& cpu, DType dtype, int64_t n_out, int64_t n_in, int64_t n_columns) : cpu_(cpu) {
        const Tensor w = set_.add("w", dtype, {n_out, n_in}, Role::Dense);
        const Tensor y = matmul(graph_, w, graph_.input("x", DType::F32, {n_columns, n_in}));
        const Node& node = graph_.nodes()[0];
        const auto bytes = static_cast<size_t>(storage_bytes(dtype, w.shape()));
        weights_ = cpu.alloc(bytes);
        std::memset(weights_.get(), 0x31, bytes);  // harmless as quants and as scales of every type
        x_ = cpu.alloc(static_cast<size_t>(n_columns * n_in) * sizeof(float));
        for (int64_t i = 0; i < n_columns * n_in; ++i)
            reinterpret_cast<float*>(x_.get())[i] = static_cast<float>(i % 17 - 8);
        y_ = cpu.alloc(static_cast<size_t>(n_columns * n_out) * sizeof(float));
        scratch_ = cpu.alloc(cpu.scratch_bytes(node) + 1);
        call_.op = node.op;
        call_.params = &node.params;
        call_.in = {{weights_.get(), dtype, w.shape()}, {x_.get(), DType::F32, {n_columns, n_in}}};
        call_.out = {{y_.get(), DType::F32, y.shape()}};
        call_.scratch = scratch_.get();
        call_.status = &status_;
    }

    void run() {
        OneCall source(call_);
        cpu_.run(source);
    }

  private:
    Backend& cpu_;
    TensorSet set_;
    Graph graph_;
    std::shared_ptr<std::byte> weights_, x_, y_, scratch_;
    CallStatus status_;
    OpCall call_;
};

}  // namespace

KernelRates::KernelRates(const CpuOptions& options) : options_(options), cpu_(make_cpu_backend(options)) {}
KernelRates::~KernelRates() = default;

std::string KernelRates::description() const { return cpu_->description(); }
std::string KernelRates::isa() const {
    const CpuKernels& kernels = choose_kernels(options_.isa);
    const char* bf16 = options_.fast_bf16 ? with_fast_bf16(kernels).bf16.name : nullptr;
    return bf16 ? bf16 : kernels.name;
}

double KernelRates::read_rate() {
    constexpr size_t kBytes = size_t{1} << 30;
    return cpu_->read_rate(kBytes);
}

double KernelRates::int8_rate() {
    constexpr int64_t kRounds = 1 << 18;
    const CpuKernels& kernels = choose_kernels(options_.isa);
    const int n_threads =
        options_.n_threads > 0 ? options_.n_threads : choose_threads("", allowed_cpus(), usable_cpus()).n_threads;
    Team team(n_threads);
    std::atomic<int64_t> n{0};
    const double seconds = best_seconds([&] {
        n = 0;
        team.run([&](Member&) { n += kernels.int8_peak(kRounds); });
    });
    return 2 * static_cast<double>(n) / seconds;
}

KernelRate KernelRates::rate(DType dtype, int64_t n_columns) {
    constexpr int64_t kIn = 4096, kManyColumns = 16, kCached = 4096;
    constexpr int64_t kBytes = int64_t{512} << 20;  // beyond every cache
    const int64_t tile_bytes = slice_bytes(dtype, {kTileRows, kIn});
    const int64_t n_out = n_columns < kManyColumns ? kBytes / tile_bytes * kTileRows : kCached;
    OneProduct product(*cpu_, dtype, n_out, kIn, n_columns);
    const double seconds = best_seconds([&] { product.run(); });
    return {dtype, n_columns, static_cast<double>(storage_bytes(dtype, {n_out, kIn})) / seconds,
            2 * static_cast<double>(n_out * kIn * n_columns) / seconds};
}

std::vector<std::string> supported_isas() {
    std::vector<std::string> names;
    for (const CpuKernels* kernels : supported_kernels()) names.emplace_back(kernels->name);
    return names;
}

}  // namespace ggmlx
