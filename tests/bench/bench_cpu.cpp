// How fast the CPU backend reads weights and caches: matmul of every type, and attention, beside a plain read of memory
// by the same number of threads. One column is a decode step, more are a small batch. The weights are larger than any
// cache; attention works on a new layer in every round, so that its rows come from memory too.
//
//   GGMLX_ISA=avx2 bench_cpu --benchmark_filter=matmul/mxfp4

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstring>

#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/cpu/threads.h"
#include "ggmlx/backend/cpu/topology.h"
#include "ggmlx/core/math.h"
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

/// One layer's attention at some depth.
struct AttentionShape {
    const char* name;
    int64_t n_head, n_head_kv, head_dim, head_dim_v;  ///< head_dim_v < head_dim: values are the beginning of the keys
    bool latent() const { return head_dim_v < head_dim; }
};

/// n_tokens at the end of a sequence of `depth` tokens. Bytes are what must be read: every row once for all tokens.
void attention_bench(benchmark::State& state, const AttentionShape& shape, DType dtype, int64_t depth,
                     int64_t n_tokens) {
    constexpr int64_t kBlockLen = 128;
    const auto cpu = make_cpu_backend();
    const int64_t n_blocks = ceil_div(depth, kBlockLen);
    const Shape cache_shape{n_blocks, shape.n_head_kv, kBlockLen, shape.head_dim};
    TensorSet set;
    Graph graph;
    AttentionInputs in;
    in.q = graph.input("q", DType::F32, {n_tokens, shape.n_head, shape.head_dim});
    in.k_cache = set.add("k", dtype, cache_shape, Role::Cache, TensorKind::State);
    in.v_cache = shape.latent() ? in.k_cache : set.add("v", dtype, cache_shape, Role::Cache, TensorKind::State);
    in.block_table = graph.input("table", DType::I32, {1, n_blocks});
    in.sequence = graph.input("sequence", DType::I32, {n_tokens});
    in.positions = graph.input("positions", DType::I32, {n_tokens});
    const Tensor y = attention(graph, in, {.scale = 0.1f, .head_dim_v = shape.latent() ? shape.head_dim_v : 0});
    const Node& node = graph.nodes()[0];

    const auto layer_bytes = static_cast<size_t>(storage_bytes(dtype, cache_shape)) * (shape.latent() ? 1 : 2);
    const size_t n_layers = n_tokens > 1 ? 1 : std::max<size_t>(1, static_cast<size_t>(kWeightBytes) / layer_bytes);
    const auto cache = cpu->alloc(layer_bytes * n_layers), scratch = cpu->alloc(cpu->scratch_bytes(node));
    std::memset(cache.get(), 0x31, layer_bytes * n_layers);
    std::vector<float> q(static_cast<size_t>(in.q.shape().n_elements()), 0.25f), out(y.shape().n_elements());
    std::vector<int32_t> table, sequence(static_cast<size_t>(n_tokens)), positions;
    for (int32_t b = 0; b < n_blocks; ++b) table.push_back(b);
    for (int64_t t = 0; t < n_tokens; ++t) positions.push_back(static_cast<int32_t>(depth - n_tokens + t));
    const auto view = [](auto& values, Tensor t) {
        return TensorView{reinterpret_cast<std::byte*>(values.data()), t.dtype(), t.shape()};
    };
    CallStatus status;
    size_t layer = 0;
    for (auto _ : state) {
        std::byte* k = cache.get() + layer_bytes * layer;
        layer = (layer + 1) % n_layers;
        OpCall call{.op = node.op,
                    .params = &node.params,
                    .in = {view(q, in.q),
                           {k, dtype, cache_shape},
                           {shape.latent() ? k : k + layer_bytes / 2, dtype, cache_shape},
                           view(table, in.block_table),
                           view(sequence, in.sequence),
                           view(positions, in.positions)},
                    .out = {view(out, y)},
                    .scratch = scratch.get(),
                    .status = &status};
        OneCall source(call);
        cpu->run(source);
    }
    state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(layer_bytes));
    const int64_t pairs = n_tokens * depth - n_tokens * (n_tokens - 1) / 2;
    state.SetItemsProcessed(state.iterations() * pairs * shape.n_head * (shape.head_dim + shape.head_dim_v));
    state.SetLabel(cpu->description());
}

template <class F>
void add_benchmark(const std::string& name, F f) {
    benchmark::RegisterBenchmark(name.c_str(), f)
        ->MeasureProcessCPUTime()
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
}

[[maybe_unused]] const bool registered = [] {
    add_benchmark("read", read_memory);
    for (DType dtype : {DType::MXFP4, DType::Q4_0, DType::Q4_1, DType::Q4_K, DType::Q6_K, DType::Q8_0, DType::MXFP8,
                        DType::F16, DType::BF16, DType::F32})
        for (int64_t n_tokens : {1, 2, 4, 8, 32})
            add_benchmark("matmul/" + std::string(name(dtype)) + "/" + std::to_string(n_tokens),
                          [=](benchmark::State& state) { matmul_bench(state, dtype, n_tokens); });
    const AttentionShape gqa{"gqa", 32, 8, 128, 128}, mla16{"mla16", 16, 1, 576, 512},
        mla128{"mla128", 128, 1, 576, 512};
    for (const AttentionShape& shape : {gqa, mla16, mla128})
        for (DType dtype : {DType::F16, DType::Q8_0})
            for (int64_t depth : {4096, 32768})
                for (int64_t n_tokens : {1, 64})
                    add_benchmark(
                        "attention/" + std::string(shape.name) + "/" + std::string(name(dtype)) + "/" +
                            std::to_string(depth) + "/" + std::to_string(n_tokens),
                        [=](benchmark::State& state) { attention_bench(state, shape, dtype, depth, n_tokens); });
    return true;
}();

}  // namespace
}  // namespace ggmlx
