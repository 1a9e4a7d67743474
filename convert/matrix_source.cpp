#include "convert/matrix_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "ggmlx/core/error.h"
#include "ggmlx/core/float_types.h"
#include "ggmlx/core/math.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

template <class Stored>
Stored element(std::span<const std::byte> data, int64_t i) {
    Stored value;
    std::memcpy(&value, data.data() + static_cast<size_t>(i) * sizeof value, sizeof value);
    return value;
}

/// Elements first, first + step … of a float type, n of them, to dst[0], dst[dst_step] … Data in a file may lie at any
/// address.
void to_f32(SourceType type, std::span<const std::byte> data, int64_t first, int64_t n, float* dst, int64_t step = 1,
            int64_t dst_step = 1) {
    const auto convert_each = [&]<class Stored>(Stored, auto to_float) {
        if (step == 1 && dst_step == 1)  // a loop of its own, which compilers vectorize
            for (int64_t i = 0; i < n; ++i) dst[i] = to_float(element<Stored>(data, first + i));
        else
            for (int64_t i = 0; i < n; ++i) dst[i * dst_step] = to_float(element<Stored>(data, first + i * step));
    };
    switch (type) {
        case SourceType::F32:
            return convert_each(float{}, [](float v) { return v; });
        case SourceType::F16:
            return convert_each(uint16_t{}, ggmlx::f16_to_f32);
        case SourceType::BF16:
            return convert_each(uint16_t{}, ggmlx::bf16_to_f32);
        case SourceType::F8_E4M3:
            return convert_each(uint8_t{}, ggmlx::f8_e4m3_to_f32);
        case SourceType::F8_E8M0:
            return convert_each(uint8_t{}, ggmlx::e8m0_to_f32);
        default:
            fail(ErrorKind::Unsupported, "{} is no type of weights or scales", name(type));
    }
}

bool is_weight_type(SourceType type) {
    return type == SourceType::F32 || type == SourceType::F16 || type == SourceType::BF16 ||
           type == SourceType::F8_E4M3;
}

const Checkpoint::Entry* find_weight(const Checkpoint& checkpoint, std::string_view tensor_name) {
    const Checkpoint::Entry* entry = checkpoint.find(tensor_name);
    require(entry != nullptr, ErrorKind::CorruptFile, "the checkpoint has no tensor \"{}\"", tensor_name);
    require(is_weight_type(entry->tensor->type), ErrorKind::Unsupported,
            "tensor \"{}\" is {}; weights are read as F32, F16, BF16 or F8_E4M3 with block scales", tensor_name,
            convert::name(entry->tensor->type));
    return entry;
}

}  // namespace

ScaleBlock scale_block_of(std::string_view config_json) {
    using nlohmann::json;
    const json root = json::parse(config_json, nullptr, false);
    require(root.is_object(), ErrorKind::CorruptFile, "config.json is no JSON object");
    const auto found = root.find("quantization_config");
    if (found == root.end() || found->is_null()) return {};
    require(found->is_object() && found->contains("quant_method") && (*found)["quant_method"].is_string(),
            ErrorKind::CorruptFile, "config.json: quantization_config has no quant_method");
    const auto method = (*found)["quant_method"].get<std::string>();
    if (method == "mxfp4") return {};
    require(method == "fp8", ErrorKind::Unsupported,
            "config.json: the checkpoint is quantized by \"{}\"; this version reads fp8 with weight_block_size, "
            "mxfp4, and unquantized checkpoints",
            method);
    const json size = found->value("weight_block_size", json());
    require(size.is_array() && size.size() == 2 && size[0].is_number_integer() && size[1].is_number_integer() &&
                size[0] > 0 && size[1] > 0,
            ErrorKind::Unsupported, "config.json: quantization_config.weight_block_size is not two positive numbers");
    return {size[0].get<int64_t>(), size[1].get<int64_t>()};
}

std::string scale_name(std::string_view weight) { return std::string(weight) + "_scale_inv"; }

MatrixSource::MatrixSource(const Checkpoint& checkpoint, std::string_view name, ScaleBlock block)
    : entry_(find_weight(checkpoint, name)), block_(block) {
    const SourceTensor& tensor = *entry_->tensor;
    require(tensor.shape.size() == 1 || tensor.shape.size() == 2, ErrorKind::Unsupported,
            "tensor \"{}\" has the shape {}, where a matrix or a vector is expected", name, tensor.shape_text());
    n_in_ = row_stride_ = tensor.shape.back();
    n_out_ = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
    load_scales(checkpoint);
}

MatrixSource::MatrixSource(const Checkpoint& checkpoint, const llm::PackedSource& source, int64_t slice, int64_t n_out,
                           int64_t n_in, ScaleBlock block)
    : entry_(find_weight(checkpoint, source.name)),
      n_out_(n_out),
      n_in_(n_in),
      first_(source.first + slice * source.slice_stride),
      row_stride_(source.row_stride),
      column_stride_(source.column_stride),
      block_(block) {
    require(entry_->tensor->shape == source.shape, ErrorKind::CorruptFile, "tensor \"{}\" is {}, expected [{}]",
            source.name, entry_->tensor->shape_text(), fmt::join(source.shape, ", "));
    load_scales(checkpoint);
}

void MatrixSource::load_scales(const Checkpoint& checkpoint) {
    const std::string& name = entry_->tensor->name;
    const std::string scales = scale_name(name);
    const Checkpoint::Entry* found = checkpoint.find(scales);
    if (type() != SourceType::F8_E4M3) {
        require(!found, ErrorKind::CorruptFile, "\"{}\" is {}, but there are scales for it: \"{}\"", name,
                convert::name(type()), scales);
        return;
    }
    require(found, ErrorKind::CorruptFile, "\"{}\" is F8_E4M3, but its scales \"{}\" are missing", name, scales);
    require(block_.n_rows > 0, ErrorKind::CorruptFile,
            "\"{}\" has block scales, but config.json has no quantization_config.weight_block_size", name);
    const SourceTensor& grid = *found->tensor;
    std::vector<int64_t> expected = entry_->tensor->shape;
    source_cols_ = expected.back();
    expected.back() = ggmlx::ceil_div(source_cols_, block_.n_cols);
    if (expected.size() > 1) {
        source_rows_ = expected[expected.size() - 2];
        expected[expected.size() - 2] = ggmlx::ceil_div(source_rows_, block_.n_rows);
    } else {
        expected.insert(expected.begin(), 1);
    }
    require(grid.shape == expected, ErrorKind::CorruptFile,
            "\"{}\" has the shape {}, but \"{}\" of shape {} in blocks of {} x {} needs [{}]", scales,
            grid.shape_text(), name, entry_->tensor->shape_text(), block_.n_rows, block_.n_cols,
            fmt::join(expected, ", "));
    scales_.resize(static_cast<size_t>(grid.n_elements()));
    to_f32(grid.type, found->file->data(grid), 0, grid.n_elements(), scales_.data());
}

void MatrixSource::read_rows(int64_t first, int64_t n, float* dst) const {
    const auto data = entry_->file->data(*entry_->tensor);
    const int64_t begin = first_ + first * row_stride_;
    if (column_stride_ == 1)
        for (int64_t row = 0; row < n; ++row) to_f32(type(), data, begin + row * row_stride_, n_in_, dst + row * n_in_);
    else  // along the columns, which lie closer together in the file
        for (int64_t col = 0; col < n_in_; ++col)
            to_f32(type(), data, begin + col * column_stride_, n, dst + col, row_stride_, n_in_);
    if (!scales_.empty()) apply_scales(first, n, dst);
}

/// The scale of an element of the tensor, counted row-major.
float MatrixSource::scale_of(int64_t element) const {
    const int64_t col = element % source_cols_, line = element / source_cols_;
    const int64_t row = line % source_rows_, matrix = line / source_rows_;
    const int64_t grid_rows = ggmlx::ceil_div(source_rows_, block_.n_rows);
    const int64_t grid_cols = ggmlx::ceil_div(source_cols_, block_.n_cols);
    return scales_[static_cast<size_t>((matrix * grid_rows + row / block_.n_rows) * grid_cols + col / block_.n_cols)];
}

void MatrixSource::apply_scales(int64_t first, int64_t n, float* dst) const {
    for (int64_t row = first; row < first + n; ++row) {
        const int64_t begin = first_ + row * row_stride_;
        for (int64_t col = 0; col < n_in_;) {
            // Elements side by side share a scale up to the end of a block; others are looked up one by one.
            const int64_t element = begin + col * column_stride_;
            const int64_t left = column_stride_ == 1 ? block_.n_cols - element % source_cols_ % block_.n_cols : 1;
            const float scale = scale_of(element);
            for (const int64_t end = std::min(col + left, n_in_); col < end; ++col) *dst++ *= scale;
        }
    }
}

}  // namespace convert
