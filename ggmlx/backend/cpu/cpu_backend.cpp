#include "ggmlx/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "ggmlx/backend/cpu/dispatch.h"
#include "ggmlx/backend/cpu/numa.h"
#include "ggmlx/backend/cpu/self_check.h"
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
    CpuBackend(const CpuOptions& options, NumaPlan numa)
        : wants_bf16_(options.fast_bf16),
          kernels_(wants_bf16_ ? with_fast_bf16(choose_kernels(options.isa)) : choose_kernels(options.isa)),
          numa_(std::move(numa)),
          threads_(thread_choice(options, numa_)),
          pins_(threads_.cpus),
          team_(threads_.n_threads, shards_of_threads(numa_, threads_, "")) {
        check_kernels(kernels_);
    }

    const std::string& name() const override { return name_; }
    std::string description() const override {
        return fmt::format("{}, {}{}, {} thread{} ({}{}), numa {} ({}{})", processor_name(), kernels_.name,
                           remarks_on_isa(), threads_.n_threads, threads_.n_threads == 1 ? "" : "s", threads_.reason,
                           threads_.cpus.empty() ? "" : ", pinned", ggmlx::name(numa_.policy), numa_.reason,
                           memory_problem_);
    }
    uint64_t free_bytes() const override { return free_host_bytes(); }

    bool supports(const Node& node) const override { return cpu::row(node.op).supports(node); }
    ProductKernels product_kernels(DType weight) const override { return describe_products(kernels_, weight); }
    size_t scratch_bytes(const Node& node) const override {
        return cpu::row(node.op).scratch_bytes(node, {kernels_, threads_.n_threads, numa_.n_shards});
    }

    std::shared_ptr<std::byte> alloc(size_t size_bytes) override {
        auto memory = alloc_host(name_, size_bytes);
        if (numa_.policy != NumaPolicy::Off) interleave(memory.get(), size_bytes);
        return memory;
    }
    int n_shards() const override { return numa_.n_shards; }
    ShardedMemory alloc_shards(size_t size_bytes) override {
        constexpr size_t kPage = 4096, kHugePage = size_t{2} << 20;
        const size_t unit = size_bytes < kHugePage ? kPage : kHugePage;  // no page belongs to two nodes
        const size_t stride = (size_bytes + unit - 1) / unit * unit,
                     total = stride * static_cast<size_t>(numa_.n_shards);
        auto memory = alloc_host(name_, total);
        for (size_t i = 0; i < static_cast<size_t>(numa_.n_shards); ++i)
            if (free_bytes_of_node("", numa_.nodes[i]) < size_bytes) {
                memory_problem_ = fmt::format(", but node {} has no room for its part: interleaved", numa_.nodes[i]);
                interleave(memory.get(), total);
                return {memory, static_cast<int64_t>(stride)};
            }
        for (size_t i = 0; i < static_cast<size_t>(numa_.n_shards); ++i)
            if (!bind_memory(memory.get() + i * stride, stride, numa_.nodes[i])) memory_problem_ = kRefused;
        return {memory, static_cast<int64_t>(stride)};
    }
    void upload(std::byte* device, const void* host, size_t size_bytes) override {
        constexpr size_t kWorthATeam = size_t{4} << 20;
        const auto* from = static_cast<const std::byte*>(host);
        const size_t by_team = size_bytes < kWorthATeam ? 0 : size_bytes / kLine * kLine;
        if (by_team > 0) {
            const AffinityKept kept;
            run_team([&](Member& team) {  // fresh memory comes to lie near those who write it first
                share_lines(by_team, team,
                            [&](size_t begin, size_t n) { std::memcpy(device + begin, from + begin, n); });
            });
        }
        if (by_team < size_bytes) std::memcpy(device + by_team, from + by_team, size_bytes - by_team);
    }
    void download(void* host, const std::byte* device, size_t size_bytes) override {
        std::memcpy(host, device, size_bytes);
    }
    bool reads_host_memory() const override { return true; }
    bool chooses_nodes() const override { return numa_.policy != NumaPolicy::Off; }

    double read_rate(size_t size_bytes) override {
        const auto memory = alloc(size_bytes);
        const AffinityKept kept;
        run_team([&](Member& team) {  // written first by those who will read it
            share_lines(size_bytes, team, [&](size_t begin, size_t n) { std::memset(memory.get() + begin, 1, n); });
        });
        return read_rate_of({memory.get(), size_bytes});
    }

    double read_rate_of(std::span<const std::byte> memory) override {
        constexpr int kRepetitions = 5;
        const AffinityKept kept;
        std::atomic<uint64_t> sink{0};
        double best = 0;
        for (int i = 0; i < kRepetitions; ++i) {
            const auto start = std::chrono::steady_clock::now();
            run_team([&](Member& team) {
                share_lines(memory.size(), team, [&](size_t begin, size_t n) {
                    sink += kernels_.read_lines(memory.data() + begin, static_cast<int64_t>(n) / kLine);
                });
            });
            const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
            best = std::max(best, static_cast<double>(memory.size()) / seconds.count());
        }
        return best;
    }

    void run(SegmentSource& source) override {
        calls_ = {};
        run_team([&](Member& team) { run_segments(source, team); });
    }

  private:
    static constexpr int64_t kLine = 64;
    static constexpr const char* kRefused = ", but the system refused";

    void interleave(std::byte* memory, size_t size_bytes) {
        if (!interleave_memory(memory, size_bytes, numa_.nodes)) memory_problem_ = kRefused;
    }

    std::string remarks_on_isa() const {
        std::string text;
        if (const std::string reason = left_out_reason(); !reason.empty()) text = fmt::format(" ({})", reason);
        if (!wants_bf16_) return text;
        if (kernels_.bf16.name) return fmt::format("{} with fast bf16 products ({})", text, kernels_.bf16.name);
        return fmt::format("{}, --fast-bf16 without effect ({} has no bf16 products on this processor)", text,
                           kernels_.name);
    }

    /// team_.run with every thread on its processor.
    template <class Body>
    void run_team(Body body) {
        team_.run([&](Member& team) {
            pins_.enter(team.index());
            body(team);
        });
    }

    /// Calls f(begin, n) for the whole lines of size_bytes bytes, 256 KiB at a time.
    template <class F>
    static void share_lines(size_t size_bytes, Member& team, F f) {
        constexpr int64_t kGrain = 4096;
        team.share(static_cast<int64_t>(size_bytes) / kLine, kGrain, [&](int64_t begin, int64_t end) {
            f(static_cast<size_t>(begin * kLine), static_cast<size_t>((end - begin) * kLine));
        });
    }

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
    const bool wants_bf16_;
    const CpuKernels kernels_;
    const NumaPlan numa_;
    const ThreadChoice threads_;
    const Pins pins_;
    Team team_;
    std::string memory_problem_;      ///< why memory does not lie where it should
    std::span<OpCall* const> calls_;  ///< of the segment that runs now; written by thread 0 alone, before a barrier
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(CpuOptions options) {
    return make_cpu_backend(options, plan_numa(options.numa, "", allowed_cpus(), can_bind_memory()));
}
std::unique_ptr<Backend> make_cpu_backend(CpuOptions options, NumaPlan numa) {
    return std::make_unique<CpuBackend>(options, std::move(numa));
}

}  // namespace ggmlx
