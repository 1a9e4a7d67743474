#include "ggmlx/backend/weights.h"

#include <algorithm>

#include "ggmlx/backend/host_memory.h"
#include "ggmlx/backend/resident.h"
#include "ggmlx/core/math.h"
#include "ggmlx/core/parallel.h"

namespace ggmlx {
DeviceWeights::DeviceWeights(const TensorSet& tensors, Placement placement, std::vector<Backend*> devices)
    : tensors_(&tensors), placement_(std::move(placement)), devices_(std::move(devices)) {
    for (int32_t id = 0; id < tensors.size(); ++id) {
        const Home& home = placement_[tensors[id]];
        auto used = home.devices;
        std::sort(used.begin(), used.end());
        used.erase(std::unique(used.begin(), used.end()), used.end());
        auto& list = residents_.emplace_back();
        for (DeviceId device : used) list.push_back({.device = device});
    }
}

DeviceWeights::~DeviceWeights() = default;

void DeviceWeights::read_in_place(Tensor tensor, Resident& part, std::shared_ptr<std::byte> bytes,
                                  int64_t stride) const {
    part.data = bytes.get();
    part.owner = std::move(bytes);
    part.size_bytes = part_bytes(tensor);
    if (!is_stacked(tensor)) return;
    part.stride = stride;
    part.n_slots = expert_count(tensor);
    part.size_bytes += (part.n_slots - 1) * stride;
    for (int64_t e = 0; e < part.n_slots; ++e)
        part.slot_of_expert.push_back(placement_[tensor].device_of(e) == part.device ? static_cast<int32_t>(e) : -1);
}

void DeviceWeights::place_slots(Tensor tensor, Resident& part, int64_t stride) const {
    part.size_bytes = part.is_sharded() ? part.shards.shard_bytes(0) : part_bytes(tensor);
    if (!is_stacked(tensor)) return;
    part.stride = part.is_sharded() ? round_up(part.size_bytes, 64) : stride;
    for (int64_t e = 0; e < expert_count(tensor); ++e)
        part.slot_of_expert.push_back(
            placement_[tensor].device_of(e) == part.device ? static_cast<int32_t>(part.n_slots++) : -1);
    part.size_bytes += (part.n_slots - 1) * part.stride;
}

void DeviceWeights::copy_in(Tensor tensor, Resident& part, std::span<const std::byte> bytes,
                            int64_t source_stride) const {
    Backend& backend = *devices_[static_cast<size_t>(part.device)];
    const int64_t size = part_bytes(tensor);
    place_slots(tensor, part, round_up(size, 64));
    if (part.is_sharded()) {
        const Backend::ShardedMemory memory = backend.alloc_shards(static_cast<size_t>(part.size_bytes));
        part.data = memory.data.get();
        part.owner = memory.data;
        part.shard_stride = memory.stride;
        return parallel_for(expert_count(tensor), 0, [&](int64_t e) {
            if (part.slot_of_expert[static_cast<size_t>(e)] >= 0) part.deal_out(e, bytes.data() + e * source_stride);
        });
    }
    part.owner = backend.alloc(static_cast<size_t>(part.size_bytes));
    part.data = part.owner.get();
    if (!is_stacked(tensor)) return backend.upload(part.data, bytes.data(), static_cast<size_t>(size));
    for (int64_t e = 0; e < expert_count(tensor); ++e)
        if (part.slot_of_expert[static_cast<size_t>(e)] >= 0)
            backend.upload(part.data + part.offset_of(e), bytes.data() + e * source_stride, static_cast<size_t>(size));
}

void DeviceWeights::load_tensor(Tensor tensor, const ModelFile& file, const StoredTensor& stored) {
    std::shared_ptr<Buffer> expanded;
    std::span<const std::byte> bytes = file.stored_bytes(stored);
    if (stored.compressed) {
        expanded = std::make_shared<Buffer>(stored.raw_bytes);
        file.read(stored, expanded->bytes());
        bytes = expanded->bytes();
    }
    const auto stride = static_cast<int64_t>(stored.expert_stride);
    bool checked = stored.compressed;
    for (Resident& part : residents_[static_cast<size_t>(tensor.info().id)]) {
        if (part.data != nullptr) continue;
        if (reads_host_memory(part) && !part.is_sharded()) {
            // Kernels only read weights. An aliasing pointer keeps an expanded buffer alive; a mapped file is the
            // caller's to keep.
            auto* data = const_cast<std::byte*>(bytes.data());
            read_in_place(tensor, part, std::shared_ptr<std::byte>(expanded, data), stride);
            part.is_mapped = !stored.compressed;
            continue;
        }
        if (!checked)
            require(file.compute_checksum(stored) == stored.checksum, ErrorKind::CorruptFile,
                    "{}: the checksum of {} does not match; run ggmlx verify", file.path(), stored.name);
        checked = true;
        copy_in(tensor, part, bytes, stride);
    }
}

bool DeviceWeights::reads_host_memory(const Resident& part) const {
    return devices_[static_cast<size_t>(part.device)]->reads_host_memory();
}

std::vector<const StoredTensor*> DeviceWeights::stored_tensors(const ModelFile& file) const {
    std::vector<const StoredTensor*> list(static_cast<size_t>(tensors_->size()), nullptr);
    for (int32_t id = 0; id < tensors_->size(); ++id) {
        const Tensor tensor = (*tensors_)[id];
        if (tensor.kind() != TensorKind::Weight) continue;
        const StoredTensor* stored = file.find(tensor.name());
        require(stored && stored->dtype == tensor.dtype() && stored->shape == tensor.shape(), ErrorKind::CorruptFile,
                "{}: no tensor {} of type {} and shape {}", file.path(), tensor.name(), name(tensor.dtype()),
                tensor.shape().to_string());
        list[static_cast<size_t>(id)] = stored;
    }
    return list;
}

void DeviceWeights::load(const ModelFile& file, const WeightLoading& how) {
    const auto stored = stored_tensors(file);
    if (how.resident)
        load_resident(file, stored, how.progress);
    else
        for (auto& parts : residents_)
            for (Resident& part : parts) part.shards = {};
    uint64_t done = 0;
    for (int32_t id = 0; id < tensors_->size(); ++id) {
        const StoredTensor* tensor = stored[static_cast<size_t>(id)];
        if (!tensor) continue;
        load_tensor((*tensors_)[id], file, *tensor);
        done += tensor->stored_bytes;
        if (how.progress && !how.resident) how.progress(done, file.size_bytes());
    }
    if (how.lock) lock();
}

void DeviceWeights::lock() {
    for (const auto& parts : residents_)
        for (const Resident& part : parts)
            for (int shard = 0; shard < part.shards.n_shards; ++shard)
                if (part.data && reads_host_memory(part) && lock_problem_.empty())
                    lock_problem_ =
                        lock_memory(part.data + shard * part.shard_stride, static_cast<size_t>(part.size_bytes));
}

HostWeights DeviceWeights::host_weights() const {
    HostWeights sum;
    sum.lock_problem = lock_problem_;
    for (int32_t id = 0; id < tensors_->size(); ++id) {
        if ((*tensors_)[id].kind() != TensorKind::Weight) continue;
        for (const Resident& part : residents_[static_cast<size_t>(id)]) {
            if (!reads_host_memory(part)) continue;
            const auto size = static_cast<uint64_t>(part.size_bytes * part.shards.n_shards);
            (part.is_mapped ? sum.mapped_bytes : sum.resident_bytes) += size;
            if (part.is_sharded()) sum.sharded_bytes += size;
        }
    }
    return sum;
}

void DeviceWeights::load(const Source& source) {
    for (int32_t id = 0; id < tensors_->size(); ++id) {
        const Tensor tensor = (*tensors_)[id];
        if (tensor.kind() != TensorKind::Weight) continue;
        const auto bytes = source(tensor);
        require(bytes.size() == static_cast<size_t>(storage_bytes(tensor.dtype(), tensor.shape())),
                ErrorKind::InvalidArgument, "{}: {} bytes given, the stored form has {}", tensor.name(), bytes.size(),
                storage_bytes(tensor.dtype(), tensor.shape()));
        for (Resident& part : residents_[static_cast<size_t>(id)]) copy_in(tensor, part, bytes, part_bytes(tensor));
    }
}

void DeviceWeights::allocate_states() {
    for (int32_t id = 0; id < tensors_->size(); ++id) {
        const Tensor tensor = (*tensors_)[id];
        if (tensor.kind() != TensorKind::State) continue;
        Resident& part = residents_[static_cast<size_t>(id)].front();
        part.owner = devices_[static_cast<size_t>(part.device)]->alloc(
            static_cast<size_t>(storage_bytes(tensor.dtype(), tensor.shape())));
        part.data = part.owner.get();
    }
}

const DeviceWeights::Resident& DeviceWeights::resident(Tensor tensor, DeviceId device) const {
    for (const Resident& part : residents_[static_cast<size_t>(tensor.info().id)])
        if (part.device == device) return part;
    fail(ErrorKind::InvalidArgument, "{} does not live on {}", tensor.name(),
         devices_[static_cast<size_t>(device)]->name());
}

TensorView DeviceWeights::view(Tensor tensor, DeviceId device) const {
    const Resident& part = resident(tensor, device);
    TensorView view{.data = part.data, .dtype = tensor.dtype(), .shape = tensor.shape(), .slot_stride = 0};
    if (is_stacked(tensor)) {
        auto dims = std::vector<int64_t>(tensor.shape().dims().begin(), tensor.shape().dims().end());
        dims[0] = part.n_slots;
        view.shape = Shape(dims);
        view.slot_stride = part.stride;
        view.n_shards = part.shards.n_shards;
        view.shard_stride = part.shard_stride;
    }
    return view;
}

std::span<const int32_t> DeviceWeights::slot_table(Tensor tensor, DeviceId device) const {
    return resident(tensor, device).slot_of_expert;
}

uint64_t DeviceWeights::bytes_on(DeviceId device, TensorKind kind) const {
    uint64_t total = 0;
    for (int32_t id = 0; id < tensors_->size(); ++id) {
        const Tensor tensor = (*tensors_)[id];
        if (tensor.kind() != kind) continue;
        const Home& home = placement_[tensor];
        for (int64_t e = 0; e < expert_count(tensor); ++e)
            if (home.device_of(e) == device) total += static_cast<uint64_t>(part_bytes(tensor));
    }
    return total;
}

uint64_t DeviceWeights::weight_bytes(DeviceId device) const { return bytes_on(device, TensorKind::Weight); }
uint64_t DeviceWeights::state_bytes(DeviceId device) const { return bytes_on(device, TensorKind::State); }

void DeviceWeights::swap_experts(std::span<const Tensor> group, int64_t a, int64_t b) {
    for (Tensor tensor : group) check_swap(tensor, a, b);
    for (Tensor tensor : group) swap_in(tensor, a, b);
}

void DeviceWeights::check_swap(Tensor tensor, int64_t a, int64_t b) const {
    const int64_t n = is_stacked(tensor) ? tensor.dim(0) : 0;
    require(a >= 0 && a < n && b >= 0 && b < n, ErrorKind::InvalidArgument, "{} has no experts {} and {} to exchange",
            tensor.name(), a, b);
    const Home& home = placement_[tensor];
    require(home.device_of(a) != home.device_of(b), ErrorKind::InvalidArgument,
            "experts {} and {} of {} live on the same device", a, b, tensor.name());
    for (int64_t e : {a, b}) {
        const Resident& part = resident(tensor, home.device_of(e));
        require(part.owner != nullptr && (part.is_sharded() || part.stride >= part_bytes(tensor)) && part.n_slots < n,
                ErrorKind::InvalidArgument, "expert {} of {} is read in place from the file and cannot be exchanged", e,
                tensor.name());
    }
}

std::vector<std::byte> DeviceWeights::expert_bytes(Tensor tensor, const Resident& part, int64_t expert) const {
    std::vector<std::byte> bytes(static_cast<size_t>(part_bytes(tensor)));
    if (part.is_sharded())
        part.collect(expert, bytes.data());
    else
        devices_[static_cast<size_t>(part.device)]->download(bytes.data(), part.data + part.offset_of(expert),
                                                             bytes.size());
    return bytes;
}

void DeviceWeights::set_expert(const Resident& part, int64_t expert, const std::vector<std::byte>& bytes) const {
    if (part.is_sharded()) return part.deal_out(expert, bytes.data());
    devices_[static_cast<size_t>(part.device)]->upload(part.data + part.offset_of(expert), bytes.data(), bytes.size());
}

void DeviceWeights::swap_in(Tensor tensor, int64_t a, int64_t b) {
    Home& home = placement_.homes[static_cast<size_t>(tensor.info().id)];
    const DeviceId device_a = home.device_of(a), device_b = home.device_of(b);
    auto& part_a = const_cast<Resident&>(resident(tensor, device_a));
    auto& part_b = const_cast<Resident&>(resident(tensor, device_b));
    const std::vector<std::byte> bytes_a = expert_bytes(tensor, part_a, a), bytes_b = expert_bytes(tensor, part_b, b);
    set_expert(part_a, a, bytes_b);
    set_expert(part_b, b, bytes_a);

    const auto ia = static_cast<size_t>(a), ib = static_cast<size_t>(b);
    part_a.slot_of_expert[ib] = std::exchange(part_a.slot_of_expert[ia], -1);
    part_b.slot_of_expert[ia] = std::exchange(part_b.slot_of_expert[ib], -1);
    std::swap(home.devices[ia], home.devices[ib]);
}

}  // namespace ggmlx
