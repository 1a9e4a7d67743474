#include "ggmlx/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "ggmlx/backend/cuda/kernels/scatter.cuh"
#include "ggmlx/backend/cuda/step.h"
#include "ggmlx/backend/cuda/stream.h"
#include "ggmlx/backend/cuda/table.h"

namespace ggmlx {
namespace cuda {
namespace {

cudaDeviceProp properties_of(int index) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index), fmt::format("cuda{}", index));
    require(properties.major >= 8, ErrorKind::Unsupported,
            "cuda{}: {} has compute capability {}.{}; 8.0 is the least (A100, RTX 3090 and newer)", index,
            properties.name, properties.major, properties.minor);
    return properties;
}

class CudaBackend final : public Backend {
  public:
    CudaBackend(int index, const CudaOptions& options)
        : index_(index), name_(fmt::format("cuda{}", index)), properties_(properties_of(index)), on_(index) {
        launch_ = {stream_->get(), properties_.multiProcessorCount};
        if (options.handover != CudaOptions::Handover::Host) flags_.emplace(launch_.stream);
        if (flags_ && flags_->works()) runner_.emplace(name_, launch_, *flags_, options.stall_timeout);
        require(runner_ || options.handover != CudaOptions::Handover::Flags, ErrorKind::Unsupported,
                "{}: the driver has no stream memory operations that work", name_);
        on_.reset();
    }
    ~CudaBackend() override {
        cudaSetDevice(index_);
        cudaStreamSynchronize(launch_.stream);
    }

    const std::string& name() const override { return name_; }
    std::string description() const override {
        return fmt::format("{}, sm_{}{}, {:.0f} GiB, hand-over by {}", properties_.name, properties_.major,
                           properties_.minor, static_cast<double>(properties_.totalGlobalMem) / (1ull << 30),
                           runner_ ? "flags" : "the driving thread");
    }
    uint64_t free_bytes() const override {
        const OnDevice here(index_);
        size_t free = 0, total = 0;
        check(cudaMemGetInfo(&free, &total), name_);
        return free;
    }

    bool supports(const Node& node) const override { return row(node.op).supports(node); }
    size_t scratch_bytes(const Node& node) const override { return row(node.op).scratch_bytes(node); }

    std::shared_ptr<std::byte> alloc(size_t size_bytes) override {
        const OnDevice here(index_);
        void* memory = nullptr;
        const size_t size = std::max<size_t>(size_bytes, 1);
        const cudaError_t status = cudaMalloc(&memory, size);
        if (status == cudaErrorMemoryAllocation) {
            cudaGetLastError();
            fail(ErrorKind::OutOfMemory,
                 "{}: cannot allocate {} bytes; {} bytes are free. Move tensors to the cpu "
                 "(--n-cpu-moe, -ot), or use a smaller context (-c)",
                 name_, size_bytes, free_bytes());
        }
        check(status, name_);
        std::shared_ptr<std::byte> owner(static_cast<std::byte*>(memory), [](std::byte* p) { cudaFree(p); });
        check(cudaMemset(memory, 0, size), name_);
        return owner;
    }

    void upload(std::byte* device, const void* host, size_t size_bytes) override {
        const OnDevice here(index_);
        const auto* from = static_cast<const std::byte*>(host);
        transfer(size_bytes, [&](size_t at, size_t n, Staging& staging) {
            std::memcpy(staging.memory.data(), from + at, n);
            check(cudaMemcpyAsync(device + at, staging.memory.data(), n, cudaMemcpyHostToDevice, launch_.stream),
                  name_);
        });
        check(cudaStreamSynchronize(launch_.stream), name_);
    }
    void download(void* host, const std::byte* device, size_t size_bytes) override {
        const OnDevice here(index_);
        auto* to = static_cast<std::byte*>(host);
        for (size_t at = 0; at < size_bytes; at += kStagingBytes) {
            const size_t n = std::min(kStagingBytes, size_bytes - at);
            std::byte* staging = this->staging(0).memory.data();
            check(cudaMemcpyAsync(staging, device + at, n, cudaMemcpyDeviceToHost, launch_.stream), name_);
            check(cudaStreamSynchronize(launch_.stream), name_);
            std::memcpy(to + at, staging, n);
        }
    }
    void upload_all(std::span<const Upload> uploads) override {
        const OnDevice here(index_);
        size_t size = uploads.size() * sizeof(Piece);
        for (const Upload& u : uploads) size += u.host.size();
        if (!inputs_ || inputs_->size() < size) inputs_.emplace(size * 2);
        auto* pieces = reinterpret_cast<Piece*>(inputs_->data());
        std::byte* at = inputs_->data() + uploads.size() * sizeof(Piece);
        for (size_t i = 0; i < uploads.size(); ++i) {
            std::memcpy(at, uploads[i].host.data(), uploads[i].host.size());
            pieces[i] = {uploads[i].device, at, uploads[i].host.size()};
            at += uploads[i].host.size();
        }
        scatter(pieces, static_cast<int>(uploads.size()), launch_);
        check(cudaGetLastError(), name_ + ": inputs");
        if (!runner_) check(cudaStreamSynchronize(launch_.stream), name_ + ": inputs");
    }
    bool reads_host_memory() const override { return false; }
    bool reaches_host() const override { return true; }
    std::shared_ptr<void> reach(std::span<std::byte> host) override {
        const OnDevice here(index_);
        if (host.empty()) return nullptr;
        const cudaError_t status =
            cudaHostRegister(host.data(), host.size(), cudaHostRegisterPortable | cudaHostRegisterMapped);
        if (status == cudaErrorHostMemoryAlreadyRegistered) {  // by another card: portable, so this one reaches it too
            cudaGetLastError();
            return nullptr;
        }
        check(status, fmt::format("{}: pinning {} bytes of host memory", name_, host.size()));
        return {host.data(), [](void* p) { cudaHostUnregister(p); }};
    }

    double read_rate(size_t size_bytes) override {
        const auto memory = alloc(size_bytes);
        return read_rate_of({memory.get(), size_bytes});
    }
    double read_rate_of(std::span<const std::byte> memory) override {
        const OnDevice here(index_);
        const auto sink = alloc(sizeof(uint32_t));
        constexpr int kRepetitions = 5;
        float best_ms = INFINITY;
        cudaEvent_t begin, end;
        check(cudaEventCreate(&begin), name_);
        check(cudaEventCreate(&end), name_);
        for (int i = 0; i < kRepetitions; ++i) {
            cudaEventRecord(begin, launch_.stream);
            read_all(memory.data(), memory.size(), reinterpret_cast<uint32_t*>(sink.get()), launch_);
            cudaEventRecord(end, launch_.stream);
            check(cudaEventSynchronize(end), name_);
            float ms = 0;
            cudaEventElapsedTime(&ms, begin, end);
            best_ms = std::min(best_ms, ms);
        }
        cudaEventDestroy(begin);
        cudaEventDestroy(end);
        return static_cast<double>(memory.size()) / (best_ms * 1e-3);
    }

    void run(SegmentSource& source) override {
        const OnDevice here(index_);
        const StepView* step = source.step();
        if (step && runner_) return runner_->run(*step);
        for (auto calls = source.next(); !calls.empty(); calls = source.next()) {
            for (const OpCall* call : calls) launch_call(*call, launch_);
            check(cudaStreamSynchronize(launch_.stream), name_ + ": a step");
        }
    }

  private:
    static constexpr size_t kStagingBytes = size_t{32} << 20;
    /// Pinned memory through which bytes go that the device does not reach.
    struct Staging {
        PinnedBuffer memory{kStagingBytes};
        cudaEvent_t done = nullptr;
        Staging() { check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "cuda: an event"); }
        ~Staging() { cudaEventDestroy(done); }
        Staging(const Staging&) = delete;
        Staging& operator=(const Staging&) = delete;
    };

    const int index_;
    const std::string name_;
    const cudaDeviceProp properties_;
    std::optional<OnDevice> on_;  ///< while the members below are made
    std::optional<Stream> stream_{std::in_place};
    Launch launch_;
    std::optional<FlagOperations> flags_;
    std::optional<StepRunner> runner_;  ///< empty: segments are started one by one
    std::optional<PinnedBuffer> inputs_;
    std::unique_ptr<Staging> staging_[2];

    Staging& staging(size_t i) {
        if (!staging_[i]) staging_[i] = std::make_unique<Staging>();
        return *staging_[i];
    }

    /// Calls f(at, n, staging) for pieces; while the device copies one the next is filled.
    template <class F>
    void transfer(size_t size_bytes, F f) {
        size_t i = 0;
        for (size_t at = 0; at < size_bytes; at += kStagingBytes, i ^= 1) {
            Staging& piece = staging(i);
            check(cudaEventSynchronize(piece.done), name_);
            f(at, std::min(kStagingBytes, size_bytes - at), piece);
            check(cudaEventRecord(piece.done, launch_.stream), name_);
        }
    }
};

}  // namespace
}  // namespace cuda

CudaCards find_cuda_cards() {
    CudaCards cards;
    const cudaError_t status = cudaGetDeviceCount(&cards.count);
    if (status == cudaSuccess) return cards;
    cudaGetLastError();
    return {0, cudaGetErrorString(status)};
}

std::unique_ptr<Backend> make_cuda_backend(int index, const CudaOptions& options) {
    return std::make_unique<cuda::CudaBackend>(index, options);
}

}  // namespace ggmlx
