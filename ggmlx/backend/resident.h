#pragma once
// The inside of DeviceWeights: a tensor's bytes on one device.

#include <algorithm>
#include <memory>
#include <vector>

#include "ggmlx/backend/weights.h"

namespace ggmlx {

/// The part of a tensor that lives on one device.
struct DeviceWeights::Resident {
    DeviceId device = 0;
    std::byte* data = nullptr;
    std::shared_ptr<std::byte> owner{};  ///< empty when the bytes are read in place
    int64_t size_bytes = 0;
    bool is_mapped = false;  ///< read in place from the file
    int64_t stride = 0;      ///< bytes between slots
    int64_t n_slots = 0;
    std::vector<int32_t> slot_of_expert{};  ///< stacked tensors only
    /// The matrix of an expert and how the device deals it out; one shard: not at all. Else data, size_bytes and stride
    /// are those of shard 0, and the same for every other shard, shard_stride bytes further each.
    ShardedMatrix shards{};
    int64_t shard_stride = 0;

    int64_t offset_of(int64_t expert) const { return slot_of_expert[static_cast<size_t>(expert)] * stride; }
    bool is_sharded() const { return shards.n_shards > 1; }
    std::byte* shard_of(int64_t expert, int shard) const { return data + shard * shard_stride + offset_of(expert); }
    /// Writes an expert in stored form to its shards, and the other way round.
    void deal_out(int64_t expert, const std::byte* stored) const;
    void collect(int64_t expert, std::byte* stored) const;
};

inline bool is_stacked(Tensor t) { return t.info().role == Role::Expert && t.kind() == TensorKind::Weight; }
inline int64_t expert_count(Tensor t) { return is_stacked(t) ? t.dim(0) : 1; }

/// Bytes of one expert (or of the whole of any other tensor) in stored form.
inline int64_t part_bytes(Tensor t) {
    return storage_bytes(t.dtype(), t.shape()) / std::max<int64_t>(1, expert_count(t));
}

}  // namespace ggmlx
