#pragma once
// One matrix, vector or expert of a GGUF file, its rows in Hugging Face's order.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "convert/encode.h"
#include "convert/gguf/checkpoint.h"

namespace convert {

/// Reads from the checkpoint, which must outlive it. From several threads.
class GgufMatrix {
  public:
    /// slice: which matrix of a stack [n, n_out, n_in]; 0 for rank 1 and 2. interleaved_head: the rows of each head of
    /// so many come as rotary pairs (0, h / 2, 1, h / 2 + 1, …), as GGUF's Llama family has them; 0 if they do not. The
    /// values of a vector count as rows.
    GgufMatrix(const GgufCheckpoint::Entry& entry, int64_t slice, int64_t interleaved_head);

    int64_t n_out() const { return n_out_; }  ///< 1 for a vector
    int64_t n_in() const { return n_in_; }

    /// Fills dst, slice_bytes(dtype, {n_out, n_in}) bytes: moved if the blocks are of that type, else encoded anew.
    /// Throws corrupt_file, naming tensor, row and column, for values that are not finite.
    void store(ggmlx::DType dtype, std::span<std::byte> dst, ErrorSum* error, int n_threads) const;
    /// Rows [first, first + n) as float32, row-major.
    void read_rows(int64_t first, int64_t n, float* dst) const;

  private:
    const std::byte* row(int64_t i) const;
    int64_t source_row(int64_t i) const;
    void read_vector(float* dst) const;

    std::string name_;
    const GgufTypeInfo* type_;
    std::span<const std::byte> data_;
    int64_t n_out_ = 1, n_in_ = 0, interleaved_head_ = 0;
};

}  // namespace convert
