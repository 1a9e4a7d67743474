#include "ggmlx/backend/weights.h"

#include <algorithm>

#include "ggmlx/core/math.h"

namespace ggmlx {
namespace {

bool is_stacked(Tensor t) { return t.info().role == Role::Expert && t.kind() == TensorKind::Weight; }
int64_t expert_count(Tensor t) { return is_stacked(t) ? t.dim(0) : 1; }

/// Bytes of one expert (or of the whole of any other tensor) in stored form.
int64_t part_bytes(Tensor t) { return storage_bytes(t.dtype(), t.shape()) / std::max<int64_t>(1, expert_count(t)); }

}  // namespace

/// The part of a tensor that lives on one device.
struct DeviceWeights::Resident {
    DeviceId device = 0;
    std::byte* data = nullptr;
    std::shared_ptr<std::byte> owner;  ///< empty when the bytes are read in place
    int64_t stride = 0;                ///< bytes between slots
    int64_t n_slots = 0;
    std::vector<int32_t> slot_of_expert;  ///< stacked tensors only

    int64_t offset_of(int64_t expert) const { return slot_of_expert[static_cast<size_t>(expert)] * stride; }
};

DeviceWeights::DeviceWeights(const TensorSet& tensors, Placement placement, std::vector<Backend*> devices)
    : tensors_(&tensors), placement_(std::move(placement)), devices_(std::move(devices)) {
    for (int32_t id = 0; id < tensors.size(); ++id) {
        const Home& home = placement_[tensors[id]];
        auto used = home.devices;
        std::sort(used.begin(), used.end());
        used.erase(std::unique(used.begin(), used.end()), used.end());
        auto& list = residents_.emplace_back();
        for (DeviceId device : used)
            list.push_back(
                {.device = device, .data = nullptr, .owner = {}, .stride = 0, .n_slots = 0, .slot_of_expert = {}});
    }
}

DeviceWeights::~DeviceWeights() = default;

void DeviceWeights::read_in_place(Tensor tensor, Resident& part, std::shared_ptr<std::byte> bytes,
                                  int64_t stride) const {
    part.data = bytes.get();
    part.owner = std::move(bytes);
    if (!is_stacked(tensor)) return;
    part.stride = stride;
    part.n_slots = expert_count(tensor);
    for (int64_t e = 0; e < part.n_slots; ++e)
        part.slot_of_expert.push_back(placement_[tensor].device_of(e) == part.device ? static_cast<int32_t>(e) : -1);
}

void DeviceWeights::copy_in(Tensor tensor, Resident& part, std::span<const std::byte> bytes,
                            int64_t source_stride) const {
    Backend& backend = *devices_[static_cast<size_t>(part.device)];
    const int64_t size = part_bytes(tensor);
    if (!is_stacked(tensor)) {
        part.owner = backend.alloc(static_cast<size_t>(size));
        part.data = part.owner.get();
        backend.upload(part.data, bytes.data(), static_cast<size_t>(size));
        return;
    }
    part.stride = round_up(size, 64);
    for (int64_t e = 0; e < expert_count(tensor); ++e)
        part.slot_of_expert.push_back(
            placement_[tensor].device_of(e) == part.device ? static_cast<int32_t>(part.n_slots++) : -1);
    part.owner = backend.alloc(static_cast<size_t>(part.n_slots * part.stride));
    part.data = part.owner.get();
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
        if (devices_[static_cast<size_t>(part.device)]->reads_host_memory()) {
            // Kernels only read weights. An aliasing pointer keeps an expanded buffer alive; a mapped file is the
            // caller's to keep.
            auto* data = const_cast<std::byte*>(bytes.data());
            read_in_place(tensor, part, std::shared_ptr<std::byte>(expanded, data), stride);
            continue;
        }
        if (!checked)
            require(file.compute_checksum(stored) == stored.checksum, ErrorKind::CorruptFile,
                    "{}: the checksum of {} does not match; run ggmlx verify", file.path(), stored.name);
        checked = true;
        copy_in(tensor, part, bytes, stride);
    }
}

void DeviceWeights::load(const ModelFile& file, const std::function<void(uint64_t, uint64_t)>& progress) {
    uint64_t done = 0;
    for (int32_t id = 0; id < tensors_->size(); ++id) {
        const Tensor tensor = (*tensors_)[id];
        if (tensor.kind() != TensorKind::Weight) continue;
        const StoredTensor* stored = file.find(tensor.name());
        require(stored && stored->dtype == tensor.dtype() && stored->shape == tensor.shape(), ErrorKind::CorruptFile,
                "{}: no tensor {} of type {} and shape {}", file.path(), tensor.name(), name(tensor.dtype()),
                tensor.shape().to_string());
        load_tensor(tensor, file, *stored);
        done += stored->stored_bytes;
        if (progress) progress(done, file.size_bytes());
    }
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
        require(part.owner != nullptr && part.stride >= part_bytes(tensor) && part.n_slots < n,
                ErrorKind::InvalidArgument, "expert {} of {} is read in place from the file and cannot be exchanged", e,
                tensor.name());
    }
}

void DeviceWeights::swap_in(Tensor tensor, int64_t a, int64_t b) {
    Home& home = placement_.homes[static_cast<size_t>(tensor.info().id)];
    const DeviceId device_a = home.device_of(a), device_b = home.device_of(b);
    auto& part_a = const_cast<Resident&>(resident(tensor, device_a));
    auto& part_b = const_cast<Resident&>(resident(tensor, device_b));
    Backend& backend_a = *devices_[static_cast<size_t>(device_a)];
    Backend& backend_b = *devices_[static_cast<size_t>(device_b)];
    const auto size = static_cast<size_t>(part_bytes(tensor));
    std::byte* at_a = part_a.data + part_a.offset_of(a);
    std::byte* at_b = part_b.data + part_b.offset_of(b);

    std::vector<std::byte> bytes_a(size), bytes_b(size);
    backend_a.download(bytes_a.data(), at_a, size);
    backend_b.download(bytes_b.data(), at_b, size);
    backend_a.upload(at_a, bytes_b.data(), size);
    backend_b.upload(at_b, bytes_a.data(), size);

    const auto ia = static_cast<size_t>(a), ib = static_cast<size_t>(b);
    part_a.slot_of_expert[ib] = std::exchange(part_a.slot_of_expert[ia], -1);
    part_b.slot_of_expert[ia] = std::exchange(part_b.slot_of_expert[ib], -1);
    std::swap(home.devices[ia], home.devices[ib]);
}

}  // namespace ggmlx
