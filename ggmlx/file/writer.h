#pragma once
// Writing a .ggmx file: lay it out from descriptions, then fill tensor after tensor, then publish it under its name.
// Until finish() everything lies in NAME.partial; an exception or a kill leaves nothing under NAME.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ggmlx/core/tensor.h"

namespace ggmlx {

struct DocumentToWrite {
    std::string name;  ///< a plain file name, such as "config.json"
    std::string text;  ///< any bytes
};

struct TensorToWrite {
    std::string name;
    DType dtype = DType::F32;
    Role role = Role::Dense;
    Shape shape;
};

/// Not copyable; use from one thread, except write_slice, which may be called from several at once for different
/// slices.
class ModelWriter {
  public:
    /// Decides the layout, checks names (duplicates are invalid_argument), sizes and free space (io, with needed and
    /// free bytes), and creates PATH.partial. A PATH.partial that a killed run left is replaced; one that a running
    /// writer holds (a lock on the file) is an io error. An existing PATH stays as it is until finish().
    /// With compress every slice is stored as a zstd frame; then the size is only known at the end.
    ModelWriter(std::string path, std::vector<DocumentToWrite> documents, std::vector<TensorToWrite> tensors,
                bool compress = false);
    ~ModelWriter();  ///< removes PATH.partial unless finish() succeeded
    ModelWriter(const ModelWriter&) = delete;
    ModelWriter& operator=(const ModelWriter&) = delete;

    /// Bytes the file will have (an upper bound with compress).
    uint64_t total_bytes() const;
    /// Fills slice `index` (an expert; 0 for other tensors) of a tensor, in the stored form of its dtype,
    /// slice_bytes(dtype, shape) bytes (all of a tensor of rank 4 that is no expert). Each slice once, in any order;
    /// with compress a frame waits in memory until those of all slices before it (tensors in the order given to the
    /// constructor, then slices) are written, so keep roughly to that order.
    /// Throws io with the system's reason (disk full …), invalid_argument for a wrong size or a slice given twice.
    void write_slice(size_t tensor, int64_t slice, std::span<const std::byte> data);
    /// How many slices a tensor has: the experts of a stacked tensor [n_expert, n_out, n_in] of Role::Expert, else 1.
    int64_t n_slices(size_t tensor) const;
    /// Writes the index with checksums, fsyncs, renames over PATH and fsyncs the folder. Throws invalid_argument if a
    /// slice is missing.
    void finish();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Size the finished file would have, without touching the disk (for --dry-run and free-space checks).
uint64_t planned_file_size(const std::vector<DocumentToWrite>& documents, const std::vector<TensorToWrite>& tensors);

}  // namespace ggmlx
