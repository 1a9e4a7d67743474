#pragma once
// How a stream and the processor wait for each other: flags in host memory that the device reaches.

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>

namespace ggmlx::cuda {

/// Stream memory operations of the driver, looked up at run time.
class FlagOperations {
  public:
    /// On the current device. Tries them in a recorded step; works() says what came of it.
    explicit FlagOperations(cudaStream_t stream);
    bool works() const { return works_; }

    /// The stream goes on once the flag is not 0 any more. Throws device errors.
    void wait(cudaStream_t stream, std::atomic<uint32_t>& flag) const;
    /// The flag becomes 1 once everything before is done and visible. Throws device errors.
    void set(cudaStream_t stream, std::atomic<uint32_t>& flag) const;

  private:
    void *wait_ = nullptr, *write_ = nullptr;
    bool works_ = false;

    bool probe(cudaStream_t stream) const;
};

}  // namespace ggmlx::cuda
