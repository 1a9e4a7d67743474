#include "ggmlx/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "ggmlx/backend/cpu/dispatch.h"
#include "ggmlx/backend/cpu/self_check.h"
#include "ggmlx/backend/cpu/table.h"
#include "ggmlx/backend/cpu/topology.h"
#include "ggmlx/backend/host_memory.h"
#include "ggmlx/core/parallel.h"

namespace ggmlx {
namespace {

ThreadChoice thread_choice(int wanted) {
    require(wanted >= 0, ErrorKind::InvalidArgument, "cpu: {} threads make no sense; 0 chooses by itself", wanted);
    if (wanted > 0) return {wanted, "as asked"};
    return choose_threads("", allowed_cpus(), usable_cpus());
}

class CpuBackend final : public Backend {
  public:
    explicit CpuBackend(const CpuOptions& options)
        : kernels_(choose_kernels(options.isa)),
          threads_(thread_choice(options.n_threads)),
          team_(threads_.n_threads) {
        check_kernels(kernels_);
    }

    const std::string& name() const override { return name_; }
    std::string description() const override {
        return fmt::format("{}, {}, {} thread{} ({})", processor_name(), kernels_.name, threads_.n_threads,
                           threads_.n_threads == 1 ? "" : "s", threads_.reason);
    }
    uint64_t free_bytes() const override { return free_host_bytes(); }

    bool supports(const Node& node) const override { return cpu::row(node.op).supports(node); }
    size_t scratch_bytes(const Node& node) const override {
        return cpu::row(node.op).scratch_bytes(node, threads_.n_threads);
    }

    std::shared_ptr<std::byte> alloc(size_t size_bytes) override { return alloc_host(name_, size_bytes); }
    void upload(std::byte* device, const void* host, size_t size_bytes) override {
        std::memcpy(device, host, size_bytes);
    }
    void download(void* host, const std::byte* device, size_t size_bytes) override {
        std::memcpy(host, device, size_bytes);
    }
    bool reads_host_memory() const override { return true; }

    double read_rate(size_t size_bytes) override {
        constexpr int64_t kLine = 64, kGrain = 4096;  // 256 KiB at a time
        constexpr int kRepetitions = 5;
        const int64_t n_lines = static_cast<int64_t>(size_bytes) / kLine / kGrain * kGrain;
        const auto memory = alloc(static_cast<size_t>(n_lines * kLine));
        std::memset(memory.get(), 1, static_cast<size_t>(n_lines * kLine));
        std::atomic<uint64_t> sink{0};
        double best = 0;
        for (int i = 0; i < kRepetitions; ++i) {
            const auto start = std::chrono::steady_clock::now();
            team_.run([&](Member& team) {
                team.share(n_lines, kGrain, [&](int64_t begin, int64_t end) {
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
        team_.run([&](Member& team) { run_segments(source, team); });
    }

  private:
    /// One thread's way through a step. Thread 0 asks for segments; all go through their rounds.
    void run_segments(SegmentSource& source, Member& team) noexcept {
        for (;;) {
            if (team.index() == 0) calls_ = source.next();
            team.fork();
            auto calls = calls_;
            team.join();
            if (calls.empty()) return;
            while (!calls.empty()) {
                const auto same = [&](const OpCall* call) { return call->round == calls[0]->round; };
                const auto n = std::find_if_not(calls.begin(), calls.end(), same) - calls.begin();
                run_round(calls.first(static_cast<size_t>(n)), team);
                calls = calls.subspan(static_cast<size_t>(n));
            }
        }
    }

    /// Calls that do not need each other: the light parts, then the heavy ones. Light parts with little to do are
    /// thread 0's: without the team they follow each other, from round to round, without waiting.
    void run_round(std::span<OpCall* const> calls, Member& team) noexcept {
        bool any_light = false, any_heavy = false;
        for (const OpCall* call : calls) {
            const cpu::OpRow& row = cpu::row(call->op);
            any_heavy |= row.heavy != nullptr;
            if (!row.light) continue;
            if (!is_little(row, *call)) {
                any_light = true;
            } else if (team.index() == 0) {
                Member alone;
                cpu::Worker worker{kernels_, alone};
                row.light(*call, worker);
            }
        }
        if (!any_light && !any_heavy) return;
        cpu::Worker worker{kernels_, team};
        team.fork();
        for (const OpCall* call : calls)
            if (const cpu::OpRow& row = cpu::row(call->op); row.light && !is_little(row, *call))
                row.light(*call, worker);
        if (any_light && any_heavy) team.barrier();
        for (const OpCall* call : calls)
            if (const cpu::OpRow& row = cpu::row(call->op); row.heavy) row.heavy(*call, worker);
        team.join();
    }

    /// What a thread does faster than the team can meet.
    static bool is_little(const cpu::OpRow& row, const OpCall& call) {
        constexpr int64_t kValues = 16 << 10;
        return row.light_values(call) <= kValues;
    }

    const std::string name_ = "cpu";
    const CpuKernels& kernels_;
    const ThreadChoice threads_;
    Team team_;
    std::span<OpCall* const> calls_;  ///< of the segment that runs now; written by thread 0 alone, before a barrier
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(CpuOptions options) { return std::make_unique<CpuBackend>(options); }

}  // namespace ggmlx
