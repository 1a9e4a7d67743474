#include "convert/gguf/matrix.h"

#include <vector>

#include "convert/gguf/decode.h"
#include "convert/gguf/pack.h"
#include "ggmlx/core/error.h"

namespace convert {

GgufMatrix::GgufMatrix(const GgufCheckpoint::Entry& entry, int64_t slice, int64_t interleaved_head)
    : name_(entry.tensor->name), type_(entry.tensor->type), interleaved_head_(interleaved_head) {
    const ggmlx::Shape& shape = entry.tensor->shape;
    ggmlx::require(type_->dtype.has_value(), ggmlx::ErrorKind::Unsupported,
                   "tensor \"{}\" is {}, which is not supported", name_, type_->name);
    n_in_ = shape[-1];
    if (shape.rank() >= 2) n_out_ = shape[-2];
    const int64_t n_rows = shape.rank() >= 2 ? n_out_ : n_in_;
    ggmlx::require(interleaved_head_ == 0 || n_rows % interleaved_head_ == 0, ggmlx::ErrorKind::CorruptFile,
                   "tensor \"{}\" has {} rows, which are no whole heads of {}", name_, n_rows, interleaved_head_);
    const auto bytes = static_cast<size_t>(n_out_ * (n_in_ / type_->block_len) * type_->block_bytes);
    data_ = entry.data().subspan(static_cast<size_t>(slice) * bytes, bytes);
}

int64_t GgufMatrix::source_row(int64_t i) const {
    if (interleaved_head_ == 0) return i;
    const int64_t half = interleaved_head_ / 2, in_head = i % interleaved_head_;
    return i - in_head + 2 * (in_head % half) + in_head / half;
}

const std::byte* GgufMatrix::row(int64_t i) const {
    return data_.data() + source_row(i) * (n_in_ / type_->block_len) * type_->block_bytes;
}

void GgufMatrix::read_vector(float* dst) const {
    if (interleaved_head_ == 0) return decode_gguf_row(*type_, data_.data(), n_in_, dst);
    std::vector<float> values(static_cast<size_t>(n_in_));
    decode_gguf_row(*type_, data_.data(), n_in_, values.data());
    for (int64_t i = 0; i < n_in_; ++i) dst[i] = values[static_cast<size_t>(source_row(i))];
}

void GgufMatrix::read_rows(int64_t first, int64_t n, float* dst) const {
    if (n_out_ == 1 && n > 0) return read_vector(dst);
    for (int64_t i = 0; i < n; ++i) decode_gguf_row(*type_, row(first + i), n_in_, dst + i * n_in_);
}

void GgufMatrix::store(ggmlx::DType dtype, std::span<std::byte> dst, ErrorSum* error, int n_threads) const {
    if (type_->exact && type_->is_quantized() && dtype == *type_->dtype) {
        PackJob job{.name = name_,
                    .dtype = dtype,
                    .n_out = n_out_,
                    .n_in = n_in_,
                    .block_bytes = type_->block_bytes,
                    .row = [this](int64_t i) { return row(i); }};
        return pack_matrix(job, dst, n_threads);
    }
    EncodeJob job{.name = name_,
                  .dtype = dtype,
                  .n_out = n_out_,
                  .n_in = n_in_,
                  .read_rows = [this](int64_t first, int64_t n, float* values) { read_rows(first, n, values); },
                  .error = error};
    encode_matrix(job, dst, n_threads);
}

}  // namespace convert
