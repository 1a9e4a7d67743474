// Weights in memory of their own: planned first (one region per device, so that thousands of small tensors share 2 MB
// pages), then read by several threads at once, then checked.

#include <atomic>
#include <thread>

#include "ggmlx/backend/resident.h"
#include "ggmlx/core/parallel.h"

namespace ggmlx {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{16} << 20;
constexpr int kFewestReaders = 8;  // a drive wants several requests at a time, however few processors there are

/// Bytes on their way from the file into memory.
struct Piece {
    uint64_t offset = 0;  ///< in the file
    std::span<std::byte> to;
};

void add_pieces(std::vector<Piece>& pieces, uint64_t offset, std::span<std::byte> to) {
    for (; to.size() > kPieceBytes; offset += kPieceBytes, to = to.subspan(kPieceBytes))
        pieces.push_back({offset, to.first(kPieceBytes)});
    pieces.push_back({offset, to});
}

/// The next place from `cursor` on that a direct read from `offset` can fill.
uint64_t congruent_place(uint64_t cursor, uint64_t offset) {
    constexpr uint64_t kUnit = DirectReader::kAlignment;
    return cursor + (offset % kUnit + kUnit - cursor % kUnit) % kUnit;
}

/// Calls read(i, room) once for every i in [0, n) from several threads, each with a room of its own. After an exception
/// no further i is begun.
template <class F>
void share_with_rooms(int64_t n, size_t room_bytes, F read) {
    const int64_t n_readers = std::min<int64_t>(n, std::max(kFewestReaders, usable_cpus()));
    std::atomic<int64_t> next{0};
    parallel_for(n_readers, static_cast<int>(n_readers), [&](int64_t) {
        Buffer room(room_bytes);
        try {
            for (int64_t i = next++; i < n; i = next++) read(i, room);
        } catch (...) {
            next = n;
            throw;
        }
    });
}

/// Counts bytes from several threads, tells them from one.
class SharedProgress {
  public:
    SharedProgress(const std::function<void(uint64_t, uint64_t)>& tell, uint64_t total) : tell_(tell), total_(total) {}
    void add(uint64_t size_bytes) {
        const uint64_t done = done_ += size_bytes;
        if (tell_ && std::this_thread::get_id() == teller_) tell_(done, total_);
    }

  private:
    const std::function<void(uint64_t, uint64_t)>& tell_;
    const uint64_t total_;
    const std::thread::id teller_ = std::this_thread::get_id();
    std::atomic<uint64_t> done_{0};
};

}  // namespace

struct DeviceWeights::ResidentPlan {
    struct Entry {
        Tensor tensor;
        Resident* part;
        const StoredTensor* stored;
        uint64_t at;    ///< in the region of the part's device; if dealt out, in that of its shards
        bool is_whole;  ///< all of the tensor is in this part
    };
    std::vector<Entry> entries;
    std::vector<uint64_t> region_bytes;  ///< by device
    std::vector<uint64_t> shard_bytes;   ///< by device, of one shard

    /// An expert that is dealt out.
    struct ExpertToRead {
        size_t entry;
        int64_t expert;
    };
    std::vector<ExpertToRead> dealt_out_experts() const {
        std::vector<ExpertToRead> experts;
        for (size_t i = 0; i < entries.size(); ++i)
            for (int64_t e = 0; entries[i].part->is_sharded() && e < expert_count(entries[i].tensor); ++e)
                if (entries[i].part->slot_of_expert[static_cast<size_t>(e)] >= 0) experts.push_back({i, e});
        return experts;
    }
    uint64_t total_bytes() const {
        uint64_t total = 0;
        for (const Entry& e : entries)
            total += static_cast<uint64_t>(e.part->is_sharded() ? e.part->n_slots * part_bytes(e.tensor)
                                                                : e.part->size_bytes);
        return total;
    }
};

DeviceWeights::ResidentPlan DeviceWeights::plan_resident(const std::vector<const StoredTensor*>& stored) {
    ResidentPlan plan;
    plan.region_bytes.resize(devices_.size(), 0);
    plan.shard_bytes.resize(devices_.size(), 0);
    for (size_t id = 0; id < stored.size(); ++id) {
        if (!stored[id]) continue;
        const bool is_whole = residents_[id].size() == 1;
        if (stored[id]->compressed && !is_whole) continue;  // load_tensor expands it once for all devices
        const Tensor tensor = (*tensors_)[static_cast<int32_t>(id)];
        for (Resident& part : residents_[id]) {
            if (!reads_host_memory(part)) continue;
            const bool expands = stored[id]->compressed, has_slices = tensor.shape().rank() == 3;
            if (part.is_sharded() && (expands || !has_slices)) continue;  // load_tensor deals out what it has in memory
            place_slots(tensor, part, static_cast<int64_t>(stored[id]->expert_stride));
            uint64_t& end =
                (part.is_sharded() ? plan.shard_bytes : plan.region_bytes)[static_cast<size_t>(part.device)];
            const uint64_t at =
                part.is_sharded() ? round_up(end, 64) : congruent_place(end, expands ? 0 : stored[id]->offset);
            end = at + static_cast<uint64_t>(part.size_bytes);
            plan.entries.push_back({tensor, &part, stored[id], at, is_whole});
        }
    }
    return plan;
}

void DeviceWeights::allocate(const ResidentPlan& plan) {
    std::vector<std::shared_ptr<std::byte>> regions(devices_.size());
    std::vector<Backend::ShardedMemory> shards(devices_.size());
    for (size_t d = 0; d < devices_.size(); ++d) {
        if (plan.region_bytes[d] > 0) regions[d] = devices_[d]->alloc(plan.region_bytes[d]);
        if (plan.shard_bytes[d] > 0) shards[d] = devices_[d]->alloc_shards(plan.shard_bytes[d]);
    }
    for (const ResidentPlan::Entry& entry : plan.entries) {
        const auto d = static_cast<size_t>(entry.part->device);
        const auto& region = entry.part->is_sharded() ? shards[d].data : regions[d];
        entry.part->data = region.get() + entry.at;
        entry.part->owner = std::shared_ptr<std::byte>(region, entry.part->data);
        entry.part->shard_stride = shards[d].stride;
    }
}

void DeviceWeights::read_experts(const ModelFile& file, const ResidentPlan& plan,
                                 const std::function<void(uint64_t)>& done) {
    const std::vector<ResidentPlan::ExpertToRead> experts = plan.dealt_out_experts();
    std::vector<std::vector<Checksum>> checksums(plan.entries.size());
    int64_t largest = 0;
    for (size_t i = 0; i < plan.entries.size(); ++i) {
        checksums[i].resize(static_cast<size_t>(expert_count(plan.entries[i].tensor)));
        if (plan.entries[i].part->is_sharded()) largest = std::max(largest, part_bytes(plan.entries[i].tensor));
    }
    const auto read = [&](const ResidentPlan::ExpertToRead& which, Buffer& room) {
        const ResidentPlan::Entry& e = plan.entries[which.entry];
        const uint64_t offset = e.stored->offset + static_cast<uint64_t>(which.expert) * e.stored->expert_stride;
        const std::span<std::byte> bytes =
            room.bytes().subspan(congruent_place(0, offset), static_cast<size_t>(part_bytes(e.tensor)));
        file.read_direct(offset, bytes);
        checksums[which.entry][static_cast<size_t>(which.expert)] = xxh3(bytes);
        e.part->deal_out(which.expert, bytes.data());
        done(bytes.size());
    };
    share_with_rooms(static_cast<int64_t>(experts.size()), static_cast<size_t>(largest) + DirectReader::kAlignment,
                     [&](int64_t i, Buffer& room) { read(experts[static_cast<size_t>(i)], room); });
    for (size_t i = 0; i < plan.entries.size(); ++i)
        if (plan.entries[i].part->is_sharded() && plan.entries[i].is_whole)
            file.check(*plan.entries[i].stored, checksums[i]);
}

void DeviceWeights::load_resident(const ModelFile& file, const std::vector<const StoredTensor*>& stored,
                                  const std::function<void(uint64_t, uint64_t)>& progress) {
    const ResidentPlan plan = plan_resident(stored);
    allocate(plan);
    std::vector<Piece> pieces;
    for (const ResidentPlan::Entry& e : plan.entries) {
        if (e.stored->compressed || e.part->is_sharded()) continue;
        if (e.is_whole) {
            add_pieces(pieces, e.stored->offset, {e.part->data, e.stored->raw_bytes});
            continue;
        }
        for (int64_t expert = 0; expert < expert_count(e.tensor); ++expert)
            if (e.part->slot_of_expert[static_cast<size_t>(expert)] >= 0)
                add_pieces(pieces, e.stored->offset + static_cast<uint64_t>(expert) * e.stored->expert_stride,
                           {e.part->data + e.part->offset_of(expert), static_cast<size_t>(part_bytes(e.tensor))});
    }
    SharedProgress done(progress, plan.total_bytes());
    parallel_for(static_cast<int64_t>(pieces.size()), std::max(kFewestReaders, usable_cpus()), [&](int64_t i) {
        const Piece& piece = pieces[static_cast<size_t>(i)];
        file.read_direct(piece.offset, piece.to);
        done.add(piece.to.size());
    });
    read_experts(file, plan, [&](uint64_t size_bytes) { done.add(size_bytes); });
    parallel_for(static_cast<int64_t>(plan.entries.size()), 0, [&](int64_t i) {
        const ResidentPlan::Entry& e = plan.entries[static_cast<size_t>(i)];
        if (!e.is_whole || e.part->is_sharded()) return;
        const std::span<std::byte> bytes(e.part->data, e.stored->raw_bytes);
        if (e.stored->compressed) {
            file.read(*e.stored, bytes);
            done.add(bytes.size());
        } else {
            file.check(*e.stored, bytes);
        }
    });
    if (progress) progress(plan.total_bytes(), plan.total_bytes());
}

}  // namespace ggmlx
