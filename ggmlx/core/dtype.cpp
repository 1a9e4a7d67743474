#include "ggmlx/core/dtype.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "ggmlx/core/math.h"

namespace ggmlx {
namespace {

constexpr std::array<DTypeInfo, kDTypeCount> kTypes = {{
    {DType::F32, "f32", 1, 4, false, DType::F32},
    {DType::F16, "f16", 1, 2, false, DType::F16},
    {DType::BF16, "bf16", 1, 2, false, DType::BF16},
    {DType::I32, "i32", 1, 4, false, DType::I32},
    {DType::Q8_0, "q8_0", 32, 34, true, DType::Q8_0},
    {DType::Q4_0, "q4_0", 32, 18, true, DType::Q4_0},
    {DType::Q4_1, "q4_1", 32, 20, true, DType::Q4_1},
    {DType::Q4_K, "q4_k", 256, 144, true, DType::Q4_1},
    {DType::Q6_K, "q6_k", 256, 210, true, DType::Q8_0},
    {DType::MXFP4, "mxfp4", 32, 17, true, DType::MXFP4},
    {DType::MXFP8, "mxfp8", 32, 33, true, DType::MXFP8},
    {DType::F8_E4M3, "f8_e4m3", 1, 1, false, DType::F8_E4M3},
}};

constexpr uint64_t kMaxBytes = uint64_t{1} << 62;

int64_t checked_product(std::initializer_list<int64_t> factors, DType dtype, const Shape& shape) {
    std::optional<uint64_t> product = 1;
    for (int64_t f : factors) {
        product = checked_mul(*product, static_cast<uint64_t>(f));
        require(product && *product <= kMaxBytes, ErrorKind::InvalidArgument,
                "a {} tensor of shape {} is larger than any machine holds", name(dtype), shape.to_string());
    }
    return static_cast<int64_t>(*product);
}

}  // namespace

const DTypeInfo& info(DType dtype) {
    auto id = static_cast<size_t>(dtype);
    require(id < kTypes.size(), ErrorKind::InvalidArgument, "{} is no type id", id);
    return kTypes[id];
}

std::optional<DType> dtype_from_id(uint32_t id) {
    return id < kTypes.size() ? std::optional(kTypes[id].dtype) : std::nullopt;
}

std::optional<DType> dtype_from_name(std::string_view wanted) {
    std::string lower(wanted);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (lower == "q4_k_m" || lower == "q4_k_s") lower = "q4_k";
    for (const auto& type : kTypes)
        if (type.name == lower) return type.dtype;
    return std::nullopt;
}

std::string all_dtype_names() {
    std::string names;
    for (const auto& type : kTypes) names += (names.empty() ? "" : ", ") + std::string(type.name);
    return names;
}

bool is_cache_type(DType dtype) {
    switch (dtype) {
        case DType::F32:
        case DType::F16:
        case DType::BF16:
        case DType::F8_E4M3:
        case DType::Q8_0:
            return true;
        default:
            return false;
    }
}

int64_t cache_row_bytes(DType dtype, int64_t n) {
    const DTypeInfo& type = info(dtype);
    return ceil_div(n, type.block_len) * type.block_bytes;
}

TileGrid tile_grid(DType dtype, int64_t n_out, int64_t n_in) {
    return {ceil_div(n_out, kTileRows), ceil_div(n_in, info(dtype).block_len)};
}

int64_t slice_bytes(DType dtype, const Shape& shape) {
    const DTypeInfo& type = info(dtype);
    int64_t n_out = shape.rank() >= 2 ? shape[-2] : 1;
    int64_t n_in = shape.rank() >= 1 ? shape[-1] : 1;
    if (!type.is_block) return checked_product({n_out, n_in, type.block_bytes}, dtype, shape);
    require(shape.rank() >= 2, ErrorKind::InvalidArgument, "the type {} needs a matrix, not the shape {}", type.name,
            shape.to_string());
    TileGrid grid = tile_grid(dtype, n_out, n_in);
    return checked_product({grid.n_row_tiles, grid.n_k_blocks, type.tile_bytes()}, dtype, shape);
}

int64_t storage_bytes(DType dtype, const Shape& shape) {
    int64_t outer = 1;
    for (int i = 0; i + 2 < shape.rank(); ++i) outer = checked_product({outer, shape[i]}, dtype, shape);
    return checked_product({outer, slice_bytes(dtype, shape)}, dtype, shape);
}

}  // namespace ggmlx
