#pragma once
// One matrix of a checkpoint as float32 rows, whatever it is stored as (F32, F16, BF16, or F8_E4M3 with block scales)
// and wherever in a tensor it lies.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convert/checkpoint.h"
#include "src/arch/arch.h"

namespace convert {

/// Rows and columns that share one scale in an FP8 checkpoint (config.json: quantization_config.weight_block_size).
struct ScaleBlock {
    int64_t n_rows = 0, n_cols = 0;  ///< 0: the checkpoint has no block scales
};
/// None for mxfp4, whose scales lie beside their codes. Throws corrupt_file for impossible numbers, unsupported for a
/// quant_method other than fp8 and mxfp4, naming it.
ScaleBlock scale_block_of(std::string_view config_json);

/// The name under which the scales of an FP8 weight are stored.
std::string scale_name(std::string_view weight);

/// Reads from the checkpoint, which must outlive it. read_rows may be called from several threads.
class MatrixSource {
  public:
    /// Throws corrupt_file naming the tensor if the scales are missing, or there although the weight needs none, or of
    /// the wrong shape; unsupported for a type that is no weight. A tensor of rank 1 is one row.
    MatrixSource(const Checkpoint& checkpoint, std::string_view name, ScaleBlock block);
    /// The [n_out, n_in] matrix that is slice `slice` of a packed source in plain form. Throws as above, and
    /// corrupt_file for a tensor of another shape.
    MatrixSource(const Checkpoint& checkpoint, const llm::PackedSource& source, int64_t slice, int64_t n_out,
                 int64_t n_in, ScaleBlock block);

    int64_t n_out() const { return n_out_; }
    int64_t n_in() const { return n_in_; }
    SourceType type() const { return entry_->tensor->type; }
    /// Rows [first, first + n) as float32, row-major.
    void read_rows(int64_t first, int64_t n, float* dst) const;
    /// Will not be read again.
    void done() const noexcept { entry_->file->done_with(*entry_->tensor); }

  private:
    void load_scales(const Checkpoint& checkpoint);
    float scale_of(int64_t element) const;
    void apply_scales(int64_t first, int64_t n, float* dst) const;

    const Checkpoint::Entry* entry_;
    int64_t n_out_ = 0, n_in_ = 0;
    int64_t first_ = 0, row_stride_ = 0, column_stride_ = 1;  ///< element (r, c) is first + r · row + c · column
    int64_t source_rows_ = 1, source_cols_ = 1;               ///< of the tensor's matrices
    ScaleBlock block_;
    std::vector<float> scales_;  ///< [.., ceil(rows / n_rows), ceil(columns / n_cols)]; empty without scales
};

}  // namespace convert
