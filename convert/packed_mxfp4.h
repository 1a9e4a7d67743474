#pragma once
// MXFP4 as gpt-oss checkpoints hold it: NAME_blocks u8 [.., n / 32, 16] with two E2M1 codes a byte, the first in the
// low half, and NAME_scales u8 [.., n / 32], E8M0. Ours holds the same codes and scales in other places.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "convert/checkpoint.h"
#include "src/arch/arch.h"

namespace convert {

/// "NAME_blocks" and "NAME_scales".
std::string mxfp4_blocks_name(std::string_view name);
std::string mxfp4_scales_name(std::string_view name);

/// One [n_out, n_in] matrix. Reads from the checkpoint, which must outlive it.
class PackedMxfp4 {
  public:
    /// Throws corrupt_file, naming the tensor, unless both are there as u8 with the shapes that source.shape asks for,
    /// and if n_in is not its last extent.
    PackedMxfp4(const Checkpoint& checkpoint, const llm::PackedSource& source, int64_t slice, int64_t n_out,
                int64_t n_in);

    /// Rows [first, first + n) as float32, row-major. Throws corrupt_file for a scale that is not finite.
    void read_rows(int64_t first, int64_t n, float* dst) const;
    /// The same codes and scales as tiles: slice_bytes(mxfp4, {n_out, n_in}) bytes, with up to n_threads threads (0:
    /// all). Throws as read_rows.
    void store(std::span<std::byte> dst, int n_threads) const;
    /// Will not be read again.
    void done() const noexcept;

  private:
    int64_t first_block(int64_t row) const { return (first_ + row * row_stride_) / 32; }
    uint8_t scale(int64_t row, int64_t block) const;

    const Checkpoint::Entry *blocks_, *scales_;
    std::span<const std::byte> codes_, exponents_;
    int64_t first_ = 0, row_stride_ = 0, n_out_ = 0, n_in_ = 0;
};

}  // namespace convert
