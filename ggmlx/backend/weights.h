#pragma once
// DeviceWeights: the bytes of a TensorSet on its devices: weights from a model file (in place when the device reads
// host memory, else copied), states allocated, and for every stacked expert tensor the slots of its experts.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ggmlx/backend/backend.h"
#include "ggmlx/backend/expert_shards.h"
#include "ggmlx/file/reader.h"
#include "ggmlx/placement/rules.h"

namespace ggmlx {

/// How weights come from a file to devices that read host memory.
struct WeightLoading {
    /// Copies them into memory of the device's own (2 MB pages, its NUMA policy) instead of reading the mapped file in
    /// place. Tensors that are read whole are checked against their checksums.
    bool resident = false;
    /// Keeps them from being paged out, and reads a mapped file into memory now.
    bool lock = false;
    /// Called now and then from the loading thread: bytes done, bytes in all.
    std::function<void(uint64_t, uint64_t)> progress{};
};

/// Where the weights of devices that read host memory came to lie.
struct HostWeights {
    uint64_t mapped_bytes = 0;    ///< read in place from the file
    uint64_t resident_bytes = 0;  ///< in memory of their own
    uint64_t sharded_bytes = 0;   ///< of these, dealt out to memory nodes
    std::string lock_problem;     ///< why they could not be locked; empty: they are, or nobody asked
};

class DeviceWeights {
  public:
    /// Sources of bytes for weights: the mapped file, or random values for tests and shape benchmarks.
    using Source = std::function<std::span<const std::byte>(Tensor weight)>;

    /// Neither copies nor allocates yet. The set, the devices and the placement's device ids must fit together and
    /// outlive this.
    DeviceWeights(const TensorSet& tensors, Placement placement, std::vector<Backend*> devices);
    ~DeviceWeights();
    DeviceWeights(const DeviceWeights&) = delete;
    DeviceWeights& operator=(const DeviceWeights&) = delete;

    /// For devices that deal out experts (Backend::n_shards): marks the weights of the graph's experts() nodes for it,
    /// except where gate, up and down of any expert are on different devices. Returns how many nodes were left whole,
    /// for people; empty: none. Call before load(); weights that load() reads in place stay whole.
    std::string deal_out_experts(const Graph& graph);

    /// Puts every weight where it belongs. Compressed tensors are expanded and checked. The file must outlive this
    /// object. Throws corrupt_file, out_of_memory, io.
    void load(const ModelFile& file, const WeightLoading& how = {});
    /// The same from plain bytes in stored form, experts packed without gaps; the bytes are copied.
    void load(const Source& source);
    /// Allocates the states, zeroed. Call once, after load.
    void allocate_states();

    const TensorSet& tensors() const { return *tensors_; }
    const Placement& placement() const { return placement_; }
    std::span<Backend* const> devices() const { return devices_; }
    /// A weight or state on a device that is (one of) its home(s).
    TensorView view(Tensor tensor, DeviceId device) const;
    /// slot_of_expert of a stacked tensor on a device: [n_expert], -1 = not here. Host memory; changes with
    /// swap_experts.
    std::span<const int32_t> slot_table(Tensor tensor, DeviceId device) const;
    /// Bytes of weights and of states on a device.
    uint64_t weight_bytes(DeviceId device) const;
    uint64_t state_bytes(DeviceId device) const;
    HostWeights host_weights() const;

    /// Exchanges the homes of two experts of every tensor in `group` (gate, up, down and biases of one layer): weights
    /// and tables change, plans stay valid. Not while a step runs. Throws invalid_argument if both live on the same
    /// device, or a home cannot be written (weights that are read in place from a file).
    void swap_experts(std::span<const Tensor> group, int64_t expert_a, int64_t expert_b);

  private:
    struct Resident;
    const TensorSet* tensors_;
    Placement placement_;
    std::vector<Backend*> devices_;
    std::vector<std::vector<Resident>> residents_;  ///< by tensor id: one per device it lives on
    std::string lock_problem_;

    const Resident& resident(Tensor tensor, DeviceId device) const;
    bool reads_host_memory(const Resident& part) const;
    /// The stored form of every weight, by tensor id; null for states.
    std::vector<const StoredTensor*> stored_tensors(const ModelFile& file) const;
    /// Fills the parts of a tensor that have no bytes yet.
    void load_tensor(Tensor tensor, const ModelFile& file, const StoredTensor& stored);
    /// Fills the parts of devices that read host memory, where that takes no detour (weights_resident.cpp).
    void load_resident(const ModelFile& file, const std::vector<const StoredTensor*>& stored,
                       const std::function<void(uint64_t, uint64_t)>& progress);
    struct ResidentPlan;
    ResidentPlan plan_resident(const std::vector<const StoredTensor*>& stored);
    void allocate(const ResidentPlan& plan);
    static void read_experts(const ModelFile& file, const ResidentPlan& plan,
                             const std::function<void(uint64_t)>& done);
    /// Slots for the experts that live on the part's device, packed, `stride` bytes from each other, and its size.
    void place_slots(Tensor tensor, Resident& part, int64_t stride) const;
    void mark_dealt_out(Tensor weight, DeviceId device, ShardAxis axis);
    void lock();
    /// Slot = expert, at `stride` bytes from each other.
    void read_in_place(Tensor tensor, Resident& part, std::shared_ptr<std::byte> bytes, int64_t stride) const;
    /// The experts that live here, packed.
    void copy_in(Tensor tensor, Resident& part, std::span<const std::byte> bytes, int64_t source_stride) const;
    uint64_t bytes_on(DeviceId device, TensorKind kind) const;
    std::vector<std::byte> expert_bytes(Tensor tensor, const Resident& part, int64_t expert) const;
    void set_expert(const Resident& part, int64_t expert, const std::vector<std::byte>& bytes) const;
    void check_swap(Tensor tensor, int64_t expert_a, int64_t expert_b) const;
    void swap_in(Tensor tensor, int64_t expert_a, int64_t expert_b);
};

}  // namespace ggmlx
