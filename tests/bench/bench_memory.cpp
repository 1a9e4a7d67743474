// How fast weights can be read, by the pages they lie in: anonymous memory in 2 MB and in 4 KB pages, and a mapped file
// in the page cache. Row tiles of many matrices are read as the experts op does: pieces of 256 KiB here and there.
//
//   bench_memory --benchmark_min_time=2

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "ggmlx/backend/cpu/dispatch.h"
#include "ggmlx/backend/cpu/threads.h"
#include "ggmlx/backend/cpu/topology.h"
#include "ggmlx/backend/host_memory.h"
#include "ggmlx/core/buffer.h"
#include "ggmlx/core/parallel.h"

namespace ggmlx {
namespace {

constexpr size_t kBytes = size_t{1} << 30;
constexpr int64_t kLine = 64, kPieceLines = 4096, kPieces = static_cast<int64_t>(kBytes) / kLine / kPieceLines;

void read_all(benchmark::State& state, const std::byte* data) {
    const CpuKernels& kernels = choose_kernels("");
    const ThreadChoice choice = choose_threads("", allowed_cpus(), usable_cpus());
    const Pins pins(choice.cpus);
    const AffinityKept kept;
    Team team(choice.n_threads);
    std::atomic<uint64_t> sink{0};
    const auto read = [&] {
        team.run([&](Member& member) {
            pins.enter(member.index());
            member.share(kPieces, 1, [&](int64_t i, int64_t) {
                constexpr int64_t kStep = 1021;  // a prime: pieces far from each other, each once
                sink += kernels.read_lines(data + i * kStep % kPieces * kPieceLines * kLine, kPieceLines);
            });
        });
    };
    read();
    for (auto _ : state) read();
    state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kBytes));
}

void anonymous(benchmark::State& state, bool huge) {
    Buffer buffer(kBytes);
    if (!huge) madvise(buffer.data(), kBytes, MADV_NOHUGEPAGE);
    std::memset(buffer.data(), 1, kBytes);
    read_all(state, buffer.data());
    state.SetLabel(std::to_string(huge_page_bytes() >> 20) + " MiB in 2 MB pages");
}

void mapped(benchmark::State& state) {
    const std::string path = "bench_memory.tmp";
    {
        const std::vector<char> piece(size_t{1} << 20, 1);
        std::ofstream file(path, std::ios::binary);
        for (size_t at = 0; at < kBytes; at += piece.size()) file.write(piece.data(), std::ssize(piece));
    }
    const MappedFile file(path);
    std::remove(path.c_str());
    read_all(state, file.bytes().data());
}

BENCHMARK_CAPTURE(anonymous, pages_2M, true)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(anonymous, pages_4K, false)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(mapped)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ggmlx
