#include "ggmlx/backend/cuda/handover.h"

#include <cuda.h>

#include <chrono>
#include <new>
#include <thread>

#include "ggmlx/backend/cuda/stream.h"

namespace ggmlx::cuda {
namespace {

using Operation = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

void* driver_function(const char* name) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    constexpr unsigned kVersion = 12000;
    if (cudaGetDriverEntryPointByVersion(name, &function, kVersion, cudaEnableDefault, &found) != cudaSuccess ||
        found != cudaDriverEntryPointSuccess) {
        cudaGetLastError();
        return nullptr;
    }
    return function;
}

void call(void* function, cudaStream_t stream, std::atomic<uint32_t>& flag, unsigned flags) {
    const auto address = reinterpret_cast<CUdeviceptr>(&flag);
    const CUresult result = reinterpret_cast<Operation>(function)(stream, address, 1, flags);
    require(result == CUDA_SUCCESS, ErrorKind::Device, "cuda: stream memory operations fail with error {}",
            static_cast<int>(result));
}

}  // namespace

FlagOperations::FlagOperations(cudaStream_t stream)
    : wait_(driver_function("cuStreamWaitValue32")), write_(driver_function("cuStreamWriteValue32")) {
    try {
        works_ = wait_ && write_ && probe(stream);
    } catch (const Error&) {
        works_ = false;
    }
}

void FlagOperations::wait(cudaStream_t stream, std::atomic<uint32_t>& flag) const {
    call(wait_, stream, flag, CU_STREAM_WAIT_VALUE_GEQ);
}

void FlagOperations::set(cudaStream_t stream, std::atomic<uint32_t>& flag) const {
    call(write_, stream, flag, CU_STREAM_WRITE_VALUE_DEFAULT);
}

/// A recorded step that waits for one flag and sets another.
bool FlagOperations::probe(cudaStream_t stream) const {
    PinnedBuffer memory(2 * sizeof(std::atomic<uint32_t>));
    auto* flags = new (memory.data()) std::atomic<uint32_t>[2] {};
    Graph graph;
    graph.record(stream, [&] {
        wait(stream, flags[0]);
        set(stream, flags[1]);
    });
    graph.start(stream);
    const bool waited = cudaStreamQuery(stream) == cudaErrorNotReady;
    flags[0] = 1;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (flags[1] == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    check(cudaStreamSynchronize(stream), "cuda: trying flags");
    return waited && flags[1] == 1;
}

}  // namespace ggmlx::cuda
