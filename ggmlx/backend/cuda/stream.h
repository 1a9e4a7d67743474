#pragma once
// Owners of CUDA's objects, and errors. For host code; nothing here needs the CUDA compiler.

#include <cuda_runtime.h>

#include <memory>
#include <string_view>
#include <utility>

#include "ggmlx/core/error.h"

namespace ggmlx::cuda {

/// Throws a device error naming what was done, with CUDA's reason; out_of_memory for that reason.
inline void check(cudaError_t status, std::string_view what) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // so that the next call does not find it again
    const auto kind = status == cudaErrorMemoryAllocation ? ErrorKind::OutOfMemory : ErrorKind::Device;
    fail(kind, "{}: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status));
}

/// Makes a device the calling thread's for a while.
class OnDevice {
  public:
    explicit OnDevice(int device) {
        check(cudaGetDevice(&before_), "cuda");
        if (before_ != device) check(cudaSetDevice(device), "cuda");
    }
    ~OnDevice() { cudaSetDevice(before_); }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

  private:
    int before_ = 0;
};

class Stream {
  public:
    Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cuda: a stream"); }
    ~Stream() { cudaStreamDestroy(stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    cudaStream_t get() const { return stream_; }

  private:
    cudaStream_t stream_ = nullptr;
};

/// A recorded sequence of launches, ready to be started as one.
class Graph {
  public:
    Graph() = default;
    ~Graph() {
        if (exec_) cudaGraphExecDestroy(exec_);
    }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    /// What `launch(stream)` starts is recorded instead. Throws what launch throws.
    template <class F>
    void record(cudaStream_t stream, F launch) {
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cuda: recording a step");
        std::exception_ptr error;
        try {
            launch();
        } catch (...) {
            error = std::current_exception();
        }
        cudaGraph_t graph = nullptr;
        const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
        const std::unique_ptr<CUgraph_st, Destroy> owner(graph);
        if (error) std::rethrow_exception(error);
        check(ended, "cuda: recording a step");
        check(cudaGraphInstantiate(&exec_, graph, 0), "cuda: preparing a step");
    }
    void start(cudaStream_t stream) const { check(cudaGraphLaunch(exec_, stream), "cuda: starting a step"); }

  private:
    struct Destroy {
        void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
    };
    cudaGraphExec_t exec_ = nullptr;
};

/// Pinned host memory that kernels reach.
class PinnedBuffer {
  public:
    explicit PinnedBuffer(size_t size_bytes) : size_(size_bytes) {
        check(cudaHostAlloc(&data_, size_bytes, cudaHostAllocPortable | cudaHostAllocMapped), "cuda: pinned memory");
    }
    ~PinnedBuffer() { cudaFreeHost(data_); }
    PinnedBuffer(const PinnedBuffer&) = delete;
    PinnedBuffer& operator=(const PinnedBuffer&) = delete;
    std::byte* data() const { return static_cast<std::byte*>(data_); }
    size_t size() const { return size_; }

  private:
    void* data_ = nullptr;
    size_t size_;
};

}  // namespace ggmlx::cuda
