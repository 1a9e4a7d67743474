#pragma once
// What a device must offer. A backend allocates memory, moves bytes to and from host memory, says which ops it has, and
// runs the calls of a plan's segments. All pointers in an OpCall are in the backend's own memory.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "ggmlx/graph/call.h"
#include "ggmlx/graph/graph.h"

namespace ggmlx {

/// A device's segments of one step, in order.
class SegmentSource {
  public:
    virtual ~SegmentSource() = default;
    /// Says that the previous segment is done, waits (spinning, then sleeping) until the inputs of the next one are
    /// ready and returns its calls; empty when there is none left or the step was abandoned.
    virtual std::span<OpCall* const> next() noexcept = 0;
    /// The same as a whole, for a backend whose device waits for the flags of other segments and sets its own; it then
    /// never calls next(). Null: there is only next().
    virtual const struct StepView* step() noexcept { return nullptr; }
};

/// A device's part of a step with the flags by which devices wait for each other.
struct StepView {
    struct Part {
        std::span<OpCall* const> calls;
        std::span<const int32_t> waits;  ///< segments that must be done first, all of other devices
        int32_t segment = 0;
    };
    std::span<const Part> parts;  ///< in order
    /// By segment: not 0 once it is done, or when the step is abandoned. In memory that every device reaches.
    std::span<std::atomic<uint32_t>> done;
    /// What the backend keeps for the next run of the same program; emptied by the executor when pointers change.
    std::shared_ptr<void>* kept = nullptr;
    /// "blk.3 on cpu (expert_rows)": for messages.
    std::function<std::string(int32_t segment)> describe;
};

/// Which kernels multiply weights of one type, for people.
struct ProductKernels {
    std::string family;  ///< "avx512 int8"
    std::string remark;  ///< why it is not the device's fastest family; empty if it is
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
    /// The kernels of products with weights of this type, which supports() has.
    virtual ProductKernels product_kernels(DType weight) const {
        return static_cast<void>(weight), ProductKernels{name(), ""};
    }
    /// Temporary memory a node needs while it runs.
    virtual size_t scratch_bytes(const Node& node) const = 0;

    /// Device memory, zeroed, 64-byte aligned; freed by the returned owner. Throws out_of_memory naming device and
    /// size.
    virtual std::shared_ptr<std::byte> alloc(size_t size_bytes) = 0;
    virtual void upload(std::byte* device, const void* host, size_t size_bytes) = 0;
    virtual void download(void* host, const std::byte* device, size_t size_bytes) = 0;
    /// Many uploads at once. Each size is a multiple of 4 bytes. Not while a step runs.
    struct Upload {
        std::byte* device;
        std::span<const std::byte> host;
    };
    virtual void upload_all(std::span<const Upload> uploads) {
        for (const Upload& u : uploads) upload(u.device, u.host.data(), u.host.size());
    }
    /// True if the device has memory that the host cannot read, and itself reads and writes host memory that it was
    /// given with reach(): copies between the two are then its work, and flags in such memory are how it waits.
    virtual bool reaches_host() const { return false; }
    /// Lets the device reach whole pages of host memory for as long as the returned object lives. Throws device.
    virtual std::shared_ptr<void> reach(std::span<std::byte> host) { return static_cast<void>(host), nullptr; }
    /// True if kernels can read host memory in place: weights then stay in the mapped file.
    virtual bool reads_host_memory() const = 0;
    /// True if alloc() puts memory where a mapped file cannot be: on chosen memory nodes. Weights are then better
    /// copied.
    virtual bool chooses_nodes() const { return false; }

    /// Into how many shards experts are dealt out here, one per memory node (expert_shards.h); 1: they stay whole. Only
    /// devices that read host memory have more.
    virtual int n_shards() const { return 1; }
    /// Memory for weights in n_shards() parts of size_bytes bytes each, part i on the node of shard i: the host writes
    /// it as it likes. Part i begins at data + i * stride. Else as alloc().
    struct ShardedMemory {
        std::shared_ptr<std::byte> data;
        int64_t stride = 0;
    };
    virtual ShardedMemory alloc_shards(size_t size_bytes) { return {alloc(size_bytes), 0}; }

    /// Bytes a second at which the device reads its own memory with all it has, measured now on size_bytes of it: what
    /// no kernel can beat. 0: unknown. Throws out_of_memory. Not while a step runs.
    virtual double read_rate(size_t size_bytes) { return static_cast<void>(size_bytes), 0; }
    /// The same for given memory that the device can read.
    virtual double read_rate_of(std::span<const std::byte> memory) { return static_cast<void>(memory), 0; }

    /// Runs every segment the source hands out, the calls of a segment one after the other; before asking for the next
    /// one the results of this one are in memory. Called once per step, always from this device's one driving thread,
    /// so a backend can hold its team of threads together for the whole step.
    virtual void run(SegmentSource& source) = 0;
};

}  // namespace ggmlx
