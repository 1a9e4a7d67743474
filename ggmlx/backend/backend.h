#pragma once
// What a device must offer, and what its kernels are given. A backend allocates memory, moves bytes to and from host
// memory, says which ops it has, and runs the steps of a plan's segment. All pointers in an OpCall are in the backend's
// own memory.

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ggmlx/core/tensor.h"
#include "ggmlx/graph/graph.h"

namespace ggmlx {

/// A tensor with its bytes.
struct TensorView {
    std::byte* data = nullptr;
    DType dtype = DType::F32;
    Shape shape;
    /// Stacked expert weights: bytes between slots; the slot of an expert is given by the op's slot table. 0 for other
    /// tensors.
    int64_t slot_stride = 0;

    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(data);
    }
    bool empty() const { return data == nullptr; }
};

enum class Fault : uint32_t {
    None = 0,
    NonFinite,  ///< NaN or infinity where none may be (router logits, activations to be quantized)
    BadIndex,   ///< an id, slot or block outside its table
};
std::string_view describe(Fault fault);

/// Set by kernels instead of throwing; the first report of a step wins. Checked by the executor after a step.
class DeviceStatus {
  public:
    void report(Fault fault, int64_t row) noexcept {
        uint64_t none = 0;
        auto word = (static_cast<uint64_t>(step_.load(std::memory_order_relaxed) + 1) << 40) |
                    ((static_cast<uint64_t>(row) & 0xffffffffu) << 8) | static_cast<uint64_t>(fault);
        word_.compare_exchange_strong(none, word, std::memory_order_relaxed);
    }
    /// The step whose kernel runs now; set by the backend before each step.
    void set_step(int32_t step) noexcept { step_.store(step, std::memory_order_relaxed); }
    bool ok() const noexcept { return word_.load(std::memory_order_relaxed) == 0; }
    Fault fault() const noexcept { return static_cast<Fault>(word_.load(std::memory_order_relaxed) & 0xff); }
    int64_t row() const noexcept {
        return static_cast<int64_t>((word_.load(std::memory_order_relaxed) >> 8) & 0xffffffffu);
    }
    int32_t step() const noexcept { return static_cast<int32_t>(word_.load(std::memory_order_relaxed) >> 40) - 1; }
    void clear() noexcept { word_.store(0, std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> word_{0};
    std::atomic<int32_t> step_{0};
};

/// One op, ready to run: views in the order of op.h. Optional inputs that a node lacks are absent at the end.
struct OpCall {
    Op op;
    const OpParams* params = nullptr;
    std::vector<TensorView> in, out;
    std::byte* scratch = nullptr;  ///< scratch_bytes(node) bytes, 64-byte aligned, private to this call
    DeviceStatus* status = nullptr;

    template <class P>
    const P& param() const {
        return std::get<P>(*params);
    }
};

/// A device's segments of one step, in order.
class SegmentSource {
  public:
    virtual ~SegmentSource() = default;
    /// Says that the previous segment is done, waits (spinning, then sleeping) until the inputs of the next one are
    /// ready and returns its calls; empty when there is none left or the step was abandoned.
    virtual std::span<OpCall* const> next() noexcept = 0;
};

class Backend {
  public:
    virtual ~Backend() = default;
    /// "cpu", "ref0", "cuda0": the name rules use.
    virtual const std::string& name() const = 0;
    /// One line for people: processor or card, ISA, threads, memory.
    virtual std::string description() const = 0;
    virtual uint64_t free_bytes() const = 0;

    /// True if an op with these dtypes and shapes can run here. What no device supports runs nowhere: the cpu's table
    /// is complete.
    virtual bool supports(const Node& node) const = 0;
    /// Temporary memory a node needs while it runs.
    virtual size_t scratch_bytes(const Node& node) const = 0;

    /// Device memory, zeroed, 64-byte aligned; freed by the returned owner. Throws out_of_memory naming device and
    /// size.
    virtual std::shared_ptr<std::byte> alloc(size_t size_bytes) = 0;
    virtual void upload(std::byte* device, const void* host, size_t size_bytes) = 0;
    virtual void download(void* host, const std::byte* device, size_t size_bytes) = 0;
    /// True if kernels can read host memory in place: weights then stay in the mapped file.
    virtual bool reads_host_memory() const = 0;

    /// Runs every segment the source hands out, the calls of a segment one after the other; before asking for the next
    /// one the results of this one are in memory. Called once per step, always from this device's one driving thread,
    /// so a backend can hold its team of threads together for the whole step.
    virtual void run(SegmentSource& source) = 0;
    virtual DeviceStatus& status() = 0;
};

}  // namespace ggmlx
