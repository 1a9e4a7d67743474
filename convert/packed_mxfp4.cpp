#include "convert/packed_mxfp4.h"

#include <fmt/format.h>

#include <algorithm>

#include "ggmlx/core/error.h"
#include "ggmlx/core/math.h"
#include "ggmlx/core/parallel.h"
#include "ggmlx/quant/blocks.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::kTileRows;
using ggmlx::require;
using ggmlx::TileMXFP4;

constexpr int64_t kBlockValues = 32, kBlockBytes = 16;
/// From here on some product of a scale and twice an E2M1 value is infinite.
constexpr uint8_t kLargestExponent = 252;

const Checkpoint::Entry* find_bytes(const Checkpoint& checkpoint, const std::string& name,
                                    const std::vector<int64_t>& shape) {
    const Checkpoint::Entry* entry = checkpoint.find(name);
    require(entry != nullptr, ErrorKind::CorruptFile, "the checkpoint has no tensor \"{}\"", name);
    require(entry->tensor->type == SourceType::U8, ErrorKind::CorruptFile, "tensor \"{}\" is {}, where U8 is expected",
            name, convert::name(entry->tensor->type));
    require(entry->tensor->shape == shape, ErrorKind::CorruptFile, "tensor \"{}\" is {}, expected [{}]", name,
            entry->tensor->shape_text(), fmt::join(shape, ", "));
    return entry;
}

/// Code k of a block of 16 bytes.
uint8_t mxfp4_code(const std::byte* block, int k) {
    const auto byte = std::to_integer<uint8_t>(block[k / 2]);
    return k % 2 == 0 ? byte & 15 : byte >> 4;
}

void put_block(const std::byte* block, uint8_t exponent, TileMXFP4& tile, int row) {
    tile.e[row] = exponent;
    for (int k = 0; k < 16; ++k)
        tile.q[k / 4][row][k % 4] = static_cast<uint8_t>(mxfp4_code(block, k) | (mxfp4_code(block, k + 16) << 4));
}

}  // namespace

std::string mxfp4_blocks_name(std::string_view name) { return std::string(name) + "_blocks"; }
std::string mxfp4_scales_name(std::string_view name) { return std::string(name) + "_scales"; }

PackedMxfp4::PackedMxfp4(const Checkpoint& checkpoint, const llm::PackedSource& source, int64_t slice, int64_t n_out,
                         int64_t n_in)
    : first_(source.first + slice * source.slice_stride), row_stride_(source.row_stride), n_out_(n_out), n_in_(n_in) {
    require(source.shape.back() == n_in && n_in % kBlockValues == 0, ErrorKind::CorruptFile,
            "tensor \"{}\" holds rows of {} values in blocks of {}, but rows of {} are needed", source.name,
            source.shape.back(), kBlockValues, n_in);
    std::vector<int64_t> shape = source.shape;
    shape.back() /= kBlockValues;
    scales_ = find_bytes(checkpoint, mxfp4_scales_name(source.name), shape);
    shape.push_back(kBlockBytes);
    blocks_ = find_bytes(checkpoint, mxfp4_blocks_name(source.name), shape);
    exponents_ = scales_->file->data(*scales_->tensor);
    codes_ = blocks_->file->data(*blocks_->tensor);
}

uint8_t PackedMxfp4::scale(int64_t row, int64_t block) const {
    const auto exponent = std::to_integer<uint8_t>(exponents_[static_cast<size_t>(first_block(row) + block)]);
    require(exponent <= kLargestExponent, ErrorKind::CorruptFile,
            "tensor \"{}\" has the scale {} in row {}, block {}; scales must be finite", scales_->tensor->name,
            exponent, first_block(row) / (n_in_ / kBlockValues), block);
    return exponent;
}

void PackedMxfp4::read_rows(int64_t first, int64_t n, float* dst) const {
    for (int64_t row = first; row < first + n; ++row) {
        const std::byte* block = codes_.data() + first_block(row) * kBlockBytes;
        for (int64_t b = 0; b < n_in_ / kBlockValues; ++b, block += kBlockBytes) {
            const float half_scale = ggmlx::e8m0_to_f32(scale(row, b)) * 0.5f;
            for (int k = 0; k < kBlockValues; ++k)
                *dst++ = half_scale * static_cast<float>(ggmlx::kE2M1Doubled[mxfp4_code(block, k)]);
        }
    }
}

void PackedMxfp4::store(std::span<std::byte> dst, int n_threads) const {
    const int64_t n_blocks = n_in_ / kBlockValues;
    auto* tiles = reinterpret_cast<TileMXFP4*>(dst.data());
    ggmlx::parallel_for(ggmlx::ceil_div(n_out_, kTileRows), n_threads, [&](int64_t row_tile) {
        std::fill_n(tiles + row_tile * n_blocks, n_blocks, TileMXFP4{});
        const int64_t first = row_tile * kTileRows, end = std::min<int64_t>(first + kTileRows, n_out_);
        for (int64_t row = first; row < end; ++row)
            for (int64_t b = 0; b < n_blocks; ++b)
                put_block(codes_.data() + (first_block(row) + b) * kBlockBytes, scale(row, b),
                          tiles[row_tile * n_blocks + b], static_cast<int>(row - first));
    });
}

void PackedMxfp4::done() const noexcept {
    blocks_->file->done_with(*blocks_->tensor);
    scales_->file->done_with(*scales_->tensor);
}

}  // namespace convert
