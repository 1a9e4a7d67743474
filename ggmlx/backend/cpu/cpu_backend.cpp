#include "ggmlx/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "ggmlx/backend/cpu/dispatch.h"
#include "ggmlx/backend/cpu/numa.h"
#include "ggmlx/backend/cpu/table.h"
#include "ggmlx/backend/cpu/topology.h"
#include "ggmlx/backend/host_memory.h"
#include "ggmlx/core/parallel.h"

namespace ggmlx {
namespace {

/// OMP_PROC_BIND and GOMP_CPU_AFFINITY are orders to OpenMP, which then pins the same threads.
bool openmp_pins() {
    const char* bind = std::getenv("OMP_PROC_BIND");
    return (bind && std::string_view(bind) != "false" && std::string_view(bind) != "FALSE") ||
           std::getenv("GOMP_CPU_AFFINITY");
}

ThreadChoice thread_choice(const CpuOptions& options, const NumaPlan& numa) {
    require(options.n_threads >= 0, ErrorKind::InvalidArgument, "cpu: {} threads make no sense; 0 chooses by itself",
            options.n_threads);
    return choose_threads("", allowed_cpus(), usable_cpus(),
                          {.n_threads = options.n_threads,
                           .n_reserved = options.n_reserved,
                           .pin = options.pin && !openmp_pins(),
                           .spread = numa.policy != NumaPolicy::Off});
}

class CpuBackend final : public Backend {
  public:
    explicit CpuBackend(const CpuOptions& options)
        : kernels_(choose_kernels(options.isa)),
          numa_(plan_numa(options.numa, "", allowed_cpus(), can_bind_memory())),
          threads_(thread_choice(options, numa_)),
          pins_(threads_.cpus),
          team_(threads_.n_threads) {}

    const std::string& name() const override { return name_; }
    std::string description() const override {
        return fmt::format("{}, {}, {} thread{} ({}{}), numa {} ({}{})", processor_name(), kernels_.name,
                           threads_.n_threads, threads_.n_threads == 1 ? "" : "s", threads_.reason,
                           threads_.cpus.empty() ? "" : ", pinned", ggmlx::name(numa_.policy), numa_.reason,
                           refused_memory_ ? ", but the system refused" : "");
    }
    uint64_t free_bytes() const override { return free_host_bytes(); }

    bool supports(const Node& node) const override { return cpu::row(node.op).supports(node); }
    size_t scratch_bytes(const Node& node) const override {
        return cpu::row(node.op).scratch_bytes(node, threads_.n_threads);
    }

    std::shared_ptr<std::byte> alloc(size_t size_bytes) override {
        auto memory = alloc_host(name_, size_bytes);
        if (numa_.policy == NumaPolicy::Interleave && !interleave_memory(memory.get(), size_bytes, numa_.nodes))
            refused_memory_ = true;
        return memory;
    }
    void upload(std::byte* device, const void* host, size_t size_bytes) override {
        std::memcpy(device, host, size_bytes);
    }
    void download(void* host, const std::byte* device, size_t size_bytes) override {
        std::memcpy(host, device, size_bytes);
    }
    bool reads_host_memory() const override { return true; }
    bool chooses_nodes() const override { return numa_.policy != NumaPolicy::Off; }

    double read_rate(size_t size_bytes) override {
        constexpr int64_t kLine = 64, kGrain = 4096;  // 256 KiB at a time
        constexpr int kRepetitions = 5;
        const int64_t n_lines = static_cast<int64_t>(size_bytes) / kLine / kGrain * kGrain;
        const auto memory = alloc(static_cast<size_t>(n_lines * kLine));
        const AffinityKept kept;
        run_team([&](int) {  // written first by those who will read it
            team_.share(n_lines, kGrain, [&](int64_t begin, int64_t end) {
                std::memset(memory.get() + begin * kLine, 1, static_cast<size_t>((end - begin) * kLine));
            });
        });
        std::atomic<uint64_t> sink{0};
        double best = 0;
        for (int i = 0; i < kRepetitions; ++i) {
            const auto start = std::chrono::steady_clock::now();
            run_team([&](int) {
                team_.share(n_lines, kGrain, [&](int64_t begin, int64_t end) {
                    sink += kernels_.read_lines(memory.get() + begin * kLine, end - begin);
                });
            });
            const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
            best = std::max(best, static_cast<double>(n_lines * kLine) / seconds.count());
        }
        return best;
    }

    void run(SegmentSource& source) override {
        calls_ = {};
        run_team([&](int index) { run_segments(source, index); });
    }

  private:
    /// team_.run with every thread on its processor.
    template <class Body>
    void run_team(Body body) {
        team_.run([&](int index) {
            pins_.enter(index);
            body(index);
        });
    }

    /// One thread's way through a step. Thread 0 asks for segments; all run their calls.
    void run_segments(SegmentSource& source, int index) noexcept {
        cpu::Worker worker{kernels_, team_, index};
        for (;;) {
            if (index == 0) calls_ = source.next();
            team_.barrier();
            if (calls_.empty()) return;
            for (const OpCall* call : calls_) cpu::row(call->op).run(*call, worker);
        }
    }

    const std::string name_ = "cpu";
    const CpuKernels& kernels_;
    const NumaPlan numa_;
    const ThreadChoice threads_;
    const Pins pins_;
    Team team_;
    bool refused_memory_ = false;     ///< the system would not spread an allocation
    std::span<OpCall* const> calls_;  ///< of the segment that runs now; written by thread 0 alone, before a barrier
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(CpuOptions options) { return std::make_unique<CpuBackend>(options); }

}  // namespace ggmlx
