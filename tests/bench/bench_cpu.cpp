// How fast the CPU backend reads weights: matmul of every type, beside a plain read of the same memory by the same
// number of threads. One column is a decode step, more are a small batch. The weights are larger than any cache.
//
//   GGMLX_ISA=avx2 bench_cpu --benchmark_filter=matmul/mxfp4

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstring>

#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/cpu/threads.h"
#include "ggmlx/backend/cpu/topology.h"
#include "ggmlx/core/parallel.h"
#include "ggmlx/graph/ops.h"

namespace ggmlx {
namespace {

constexpr int64_t kWeightBytes = int64_t{256} << 20, kColumns = 4096;

int n_threads() {
    static const int n = choose_threads("", allowed_cpus(), usable_cpus()).n_threads;
    return n;
}

/// Hands out one call, then nothing.
class OneCall : public SegmentSource {
  public:
    explicit OneCall(OpCall& call) : call_(&call) {}
    std::span<OpCall* const> next() noexcept override {
        const bool given = std::exchange(given_, true);
        return given ? std::span<OpCall* const>{} : std::span<OpCall* const>(&call_, 1);
    }

  private:
    OpCall* call_;
    bool given_ = false;
};

/// XOR of all words: nothing but reading.
void read_memory(benchmark::State& state) {
    const auto cpu = make_cpu_backend();
    const auto memory = cpu->alloc(kWeightBytes);
    std::memset(memory.get(), 0x31, kWeightBytes);
    const auto* words = reinterpret_cast<const uint64_t*>(memory.get());
    Team team(n_threads());
    std::atomic<uint64_t> sink{0};
    for (auto _ : state)
        team.run([&](Member& member) {
            uint64_t sums[8] = {};
            member.share(kWeightBytes / 64, 4096, [&](int64_t begin, int64_t end) {
                for (int64_t line = begin; line < end; ++line)
                    for (int i = 0; i < 8; ++i) sums[i] ^= words[8 * line + i];
            });
            for (uint64_t sum : sums) sink ^= sum;
        });
    state.SetBytesProcessed(state.iterations() * kWeightBytes);
}

void matmul_bench(benchmark::State& state, DType dtype, int64_t n_tokens) {
    const auto cpu = make_cpu_backend();
    const int64_t n_out = kWeightBytes / slice_bytes(dtype, {kTileRows, kColumns}) * kTileRows;
    TensorSet set;
    Graph graph;
    const Tensor w = set.add("w", dtype, {n_out, kColumns}, Role::Dense);
    const Tensor y = matmul(graph, w, graph.input("x", DType::F32, {n_tokens, kColumns}));
    const Node& node = graph.nodes()[0];
    const auto bytes = static_cast<size_t>(storage_bytes(dtype, w.shape()));

    const auto weights = cpu->alloc(bytes), scratch = cpu->alloc(cpu->scratch_bytes(node));
    const auto in = cpu->alloc(static_cast<size_t>(n_tokens * kColumns) * sizeof(float));
    const auto out = cpu->alloc(static_cast<size_t>(n_tokens * n_out) * sizeof(float));
    std::memset(weights.get(), 0x31, bytes);  // harmless as quants and as scales of every type
    for (int64_t i = 0; i < n_tokens * kColumns; ++i)
        reinterpret_cast<float*>(in.get())[i] = static_cast<float>(i % 17 - 8);
    CallStatus status;
    OpCall call{.op = node.op,
                .params = &node.params,
                .in = {{weights.get(), dtype, w.shape()}, {in.get(), DType::F32, {n_tokens, kColumns}}},
                .out = {{out.get(), DType::F32, y.shape()}},
                .scratch = scratch.get(),
                .status = &status};
    for (auto _ : state) {
        OneCall source(call);
        cpu->run(source);
    }
    state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
    state.SetItemsProcessed(state.iterations() * n_tokens * n_out * kColumns);  // multiply-adds
    state.SetLabel(cpu->description());
}

[[maybe_unused]] const bool registered = [] {
    benchmark::RegisterBenchmark("read", read_memory)
        ->MeasureProcessCPUTime()
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
    for (DType dtype : {DType::MXFP4, DType::Q4_0, DType::Q4_1, DType::Q4_K, DType::Q6_K, DType::Q8_0, DType::MXFP8,
                        DType::F16, DType::BF16, DType::F32})
        for (int64_t n_tokens : {1, 2, 4, 8, 32})
            benchmark::RegisterBenchmark(
                ("matmul/" + std::string(name(dtype)) + "/" + std::to_string(n_tokens)).c_str(),
                [=](benchmark::State& state) { matmul_bench(state, dtype, n_tokens); })
                ->MeasureProcessCPUTime()
                ->UseRealTime()
                ->Unit(benchmark::kMillisecond);
    return true;
}();

}  // namespace
}  // namespace ggmlx
