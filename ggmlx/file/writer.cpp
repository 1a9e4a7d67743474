#include "ggmlx/file/writer.h"

#include <map>
#include <mutex>

#include "ggmlx/core/math.h"
#include "ggmlx/file/checksum.h"
#include "ggmlx/file/format.h"
#include "ggmlx/file/frames.h"
#include "ggmlx/file/front_matter.h"
#include "ggmlx/file/layout.h"
#include "ggmlx/file/output_file.h"

namespace ggmlx {
namespace {

using format::TensorEntry;

enum class SliceState : uint8_t { Missing, Claimed, Done };

/// How far the slices of one tensor have come.
struct Progress {
    DataLayout layout;
    uint64_t bound = 0;  ///< bytes it takes in the file, at most
    std::vector<Checksum> checksums;
    std::vector<SliceState> slices;
};

uint64_t bound_of(const DataLayout& layout, bool compress) {
    if (!compress) return layout.raw_bytes;
    auto bound = checked_mul(layout.n_slices, compressed_bound(layout.slice_bytes));
    require(bound.has_value(), ErrorKind::InvalidArgument, "a compressed tensor is larger than any machine holds");
    return *bound;
}

/// The end of what begins at the next multiple of `alignment`.
uint64_t end_after(uint64_t position, uint64_t alignment, uint64_t size_bytes) {
    const auto start = checked_round_up(position, alignment);
    const auto end = start ? checked_add(*start, size_bytes) : std::nullopt;
    require(end.has_value(), ErrorKind::InvalidArgument, "the model is larger than any machine holds");
    return *end;
}

std::vector<Progress> plan(const std::vector<TensorToWrite>& tensors, bool compress) {
    std::vector<Progress> plan;
    for (const TensorToWrite& t : tensors) {
        Progress p;
        p.layout = data_layout(t.name, t.dtype, t.role, t.shape, compress);
        p.bound = bound_of(p.layout, compress);
        p.checksums.resize(p.layout.n_slices);
        p.slices.resize(p.layout.n_slices);
        plan.push_back(std::move(p));
    }
    return plan;
}

}  // namespace

struct ModelWriter::Impl {
    Impl(const std::string& path, const std::vector<DocumentToWrite>& documents,
         const std::vector<TensorToWrite>& tensors_to_write, bool compressed)
        : tensors(tensors_to_write),
          compress(compressed),
          front(documents, tensors, compress),
          progress(plan(tensors, compress)),
          total_bytes(lay_out()),
          file(path, total_bytes) {}

    /// Offsets of raw tensors; returns the end (an upper bound with compress).
    uint64_t lay_out() {
        uint64_t position = front.end();
        for (size_t t = 0; t < tensors.size(); ++t) {
            const uint64_t end = end_after(position, progress[t].layout.alignment, progress[t].bound);
            if (!compress) {
                front.tensors[t].offset = end - progress[t].bound;
                front.tensors[t].stored_bytes = progress[t].bound;
            }
            position = end;
        }
        return position;
    }

    /// Takes the slice for the calling thread, or throws.
    void claim(size_t t, int64_t slice, size_t size_bytes) {
        require(t < tensors.size(), ErrorKind::InvalidArgument, "there is no tensor {} to write", t);
        Progress& p = progress[t];
        const auto i = static_cast<uint64_t>(slice);
        require(slice >= 0 && i < p.layout.n_slices, ErrorKind::InvalidArgument, "tensor {} has no slice {}",
                tensors[t].name, slice);
        require(size_bytes == p.layout.slice_bytes, ErrorKind::InvalidArgument,
                "tensor {}: a slice has {} bytes, not {}", tensors[t].name, p.layout.slice_bytes, size_bytes);
        std::lock_guard lock(mutex);
        require(p.slices[i] == SliceState::Missing, ErrorKind::InvalidArgument, "tensor {}: slice {} is written twice",
                tensors[t].name, slice);
        p.slices[i] = SliceState::Claimed;
    }

    void set_done(size_t t, uint64_t slice) {
        std::lock_guard lock(mutex);
        progress[t].slices[slice] = SliceState::Done;
    }

    void write_raw(size_t t, uint64_t slice, std::span<const std::byte> data) {
        file.write_at(front.tensors[t].offset + slice * progress[t].layout.stride, data);
    }

    /// Writes the frames whose turn has come; the others wait in memory.
    void append_frame(size_t t, uint64_t slice, std::vector<std::byte> frame) {
        std::lock_guard lock(mutex);
        waiting.emplace(std::pair(t, slice), std::move(frame));
        for (auto it = waiting.find(next); it != waiting.end(); it = waiting.find(next)) {
            TensorEntry& entry = front.tensors[next.first];
            if (next.second == 0) {
                entry.offset = end_after(compressed_end, format::kAlignment, 0);
                compressed_end = entry.offset;
            }
            file.write_at(compressed_end, it->second);
            compressed_end += it->second.size();
            entry.stored_bytes += it->second.size();
            waiting.erase(it);
            if (++next.second == progress[next.first].layout.n_slices) next = {next.first + 1, 0};
        }
    }

    std::vector<TensorToWrite> tensors;
    bool compress;
    FrontMatter front;
    std::vector<Progress> progress;
    uint64_t total_bytes;
    OutputFile file;

    std::mutex mutex;  // guards Progress::slices, and what follows
    std::map<std::pair<size_t, uint64_t>, std::vector<std::byte>> waiting;
    std::pair<size_t, uint64_t> next{0, 0};  // tensor and slice that the file continues with
    uint64_t compressed_end = front.end();
};

ModelWriter::ModelWriter(std::string path, std::vector<DocumentToWrite> documents, std::vector<TensorToWrite> tensors,
                         bool compress)
    : impl_(std::make_unique<Impl>(path, documents, tensors, compress)) {}

ModelWriter::~ModelWriter() = default;

uint64_t ModelWriter::total_bytes() const { return impl_->total_bytes; }

int64_t ModelWriter::n_slices(size_t tensor) const {
    return static_cast<int64_t>(impl_->progress.at(tensor).layout.n_slices);
}

void ModelWriter::write_slice(size_t tensor, int64_t slice, std::span<const std::byte> data) {
    impl_->claim(tensor, slice, data.size());
    const auto i = static_cast<uint64_t>(slice);
    impl_->progress[tensor].checksums[i] = xxh3(data);
    if (impl_->compress)
        impl_->append_frame(tensor, i, compress_frame(data));
    else
        impl_->write_raw(tensor, i, data);
    impl_->set_done(tensor, i);
}

void ModelWriter::finish() {
    uint64_t file_bytes = impl_->front.end();
    for (size_t t = 0; t < impl_->tensors.size(); ++t) {
        const Progress& p = impl_->progress[t];
        for (uint64_t i = 0; i < p.layout.n_slices; ++i)
            require(p.slices[i] == SliceState::Done, ErrorKind::InvalidArgument, "tensor {}: slice {} was not written",
                    impl_->tensors[t].name, i);
        TensorEntry& entry = impl_->front.tensors[t];
        entry.digest = combine(p.checksums).digest();
        file_bytes = entry.offset + entry.stored_bytes;
    }
    impl_->file.write_at(0, impl_->front.serialize(file_bytes));
    impl_->file.publish();
}

uint64_t planned_file_size(const std::vector<DocumentToWrite>& documents, const std::vector<TensorToWrite>& tensors) {
    uint64_t position = FrontMatter(documents, tensors, false).end();
    for (const Progress& p : plan(tensors, false)) position = end_after(position, p.layout.alignment, p.bound);
    return position;
}

}  // namespace ggmlx
