#pragma once
// What a kernel is given: one op with the bytes of its inputs and outputs, and the status word in which it reports what
// it cannot throw. The reference implementation and every backend run these calls. All pointers of a call are in the
// memory of the device that runs it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "ggmlx/core/dtype.h"
#include "ggmlx/core/shape.h"
#include "ggmlx/graph/op.h"

namespace ggmlx {

/// A tensor with its bytes.
struct TensorView {
    std::byte* data = nullptr;
    DType dtype = DType::F32;
    Shape shape;
    /// Stacked expert weights and biases: bytes from one slot to the next. The slot of an expert is given by the op's
    /// slot table (Op::Experts has none: slot = expert); slot s is one [n_out, n_in] matrix in its stored form, or one
    /// bias row, at data + s * slot_stride. 0 for other tensors.
    int64_t slot_stride = 0;
    /// Weights and biases that the device has dealt out (backend/expert_shards.h): shape is that of the whole, shard i
    /// of slot s begins at data + i * shard_stride + s * slot_stride. One shard: the slot as it is.
    int n_shards = 1;
    int64_t shard_stride = 0;

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

/// Set by kernels instead of throwing; the first report of a call wins. Checked by the executor after a step.
class CallStatus {
  public:
    void report(Fault fault, int64_t row) noexcept {
        uint64_t none = 0;
        const auto word = (static_cast<uint64_t>(row) << 8) | static_cast<uint64_t>(fault);
        word_.compare_exchange_strong(none, word, std::memory_order_relaxed);
    }
    bool ok() const noexcept { return word_.load(std::memory_order_relaxed) == 0; }
    Fault fault() const noexcept { return static_cast<Fault>(word_.load(std::memory_order_relaxed) & 0xff); }
    int64_t row() const noexcept { return static_cast<int64_t>(word_.load(std::memory_order_relaxed) >> 8); }
    void clear() noexcept { word_.store(0, std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> word_{0};
};

/// One op, ready to run: views in the order of op.h. Optional inputs that a node lacks are absent at the end.
struct OpCall {
    Op op;
    const OpParams* params = nullptr;
    std::vector<TensorView> in, out;
    std::byte* scratch = nullptr;  ///< scratch_bytes(node) bytes, 64-byte aligned, private to this call
    CallStatus* status = nullptr;  ///< of this call alone
    int32_t round = 0;             ///< consecutive calls of one round may run at the same time

    template <class P>
    const P& param() const {
        return std::get<P>(*params);
    }
};

}  // namespace ggmlx
