#include "convert/matrix_source.h"

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

/// Elements [first, first + n) of a float type. Data in a file may lie at any address.
void to_f32(SourceType type, std::span<const std::byte> data, int64_t first, int64_t n, float* dst) {
    switch (type) {
        case SourceType::F32:
            std::memcpy(dst, data.data() + static_cast<size_t>(first) * sizeof(float),
                        static_cast<size_t>(n) * sizeof(float));
            return;
        case SourceType::F16:
            for (int64_t i = 0; i < n; ++i) dst[i] = ggmlx::f16_to_f32(element<uint16_t>(data, first + i));
            return;
        case SourceType::BF16:
            for (int64_t i = 0; i < n; ++i) dst[i] = ggmlx::bf16_to_f32(element<uint16_t>(data, first + i));
            return;
        case SourceType::F8_E4M3:
            for (int64_t i = 0; i < n; ++i) dst[i] = ggmlx::f8_e4m3_to_f32(element<uint8_t>(data, first + i));
            return;
        case SourceType::F8_E8M0:
            for (int64_t i = 0; i < n; ++i) dst[i] = ggmlx::e8m0_to_f32(element<uint8_t>(data, first + i));
            return;
        default:
            fail(ErrorKind::Unsupported, "{} is no type of weights or scales", name(type));
    }
}

bool is_weight_type(SourceType type) {
    return type == SourceType::F32 || type == SourceType::F16 || type == SourceType::BF16 ||
           type == SourceType::F8_E4M3;
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
    require(method == "fp8", ErrorKind::Unsupported,
            "config.json: the checkpoint is quantized by \"{}\"; this version reads fp8 with weight_block_size, and "
            "unquantized checkpoints",
            method);
    const json size = found->value("weight_block_size", json());
    require(size.is_array() && size.size() == 2 && size[0].is_number_integer() && size[1].is_number_integer() &&
                size[0] > 0 && size[1] > 0,
            ErrorKind::Unsupported, "config.json: quantization_config.weight_block_size is not two positive numbers");
    return {size[0].get<int64_t>(), size[1].get<int64_t>()};
}

std::string scale_name(std::string_view weight) { return std::string(weight) + "_scale_inv"; }

MatrixSource::MatrixSource(const Checkpoint& checkpoint, std::string_view name, ScaleBlock block)
    : entry_(checkpoint.find(name)), block_(block) {
    require(entry_ != nullptr, ErrorKind::CorruptFile, "the checkpoint has no tensor \"{}\"", name);
    const SourceTensor& tensor = *entry_->tensor;
    require(is_weight_type(tensor.type), ErrorKind::Unsupported,
            "tensor \"{}\" is {}; weights are read as F32, F16, BF16 or F8_E4M3 with block scales", name,
            convert::name(tensor.type));
    require(tensor.shape.size() == 1 || tensor.shape.size() == 2, ErrorKind::Unsupported,
            "tensor \"{}\" has the shape {}, where a matrix or a vector is expected", name, tensor.shape_text());
    n_in_ = tensor.shape.back();
    n_out_ = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
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
    const std::vector<int64_t> expected = {ggmlx::ceil_div(n_out_, block_.n_rows),
                                           ggmlx::ceil_div(n_in_, block_.n_cols)};
    require(grid.shape == expected, ErrorKind::CorruptFile,
            "\"{}\" has the shape {}, but \"{}\" of shape {} in blocks of {} x {} needs [{}, {}]", scales,
            grid.shape_text(), name, entry_->tensor->shape_text(), block_.n_rows, block_.n_cols, expected[0],
            expected[1]);
    scales_.resize(static_cast<size_t>(grid.n_elements()));
    to_f32(grid.type, found->file->data(grid), 0, grid.n_elements(), scales_.data());
}

void MatrixSource::read_rows(int64_t first, int64_t n, float* dst) const {
    to_f32(type(), entry_->file->data(*entry_->tensor), first * n_in_, n * n_in_, dst);
    if (scales_.empty()) return;
    const int64_t grid_cols = ggmlx::ceil_div(n_in_, block_.n_cols);
    for (int64_t row = first; row < first + n; ++row) {
        const float* row_scales = scales_.data() + row / block_.n_rows * grid_cols;
        float* values = dst + (row - first) * n_in_;
        for (int64_t col = 0; col < n_in_; ++col) values[col] *= row_scales[col / block_.n_cols];
    }
}

}  // namespace convert
