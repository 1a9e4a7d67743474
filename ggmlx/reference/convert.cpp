#include "ggmlx/reference/convert.h"

#include <algorithm>

#include "ggmlx/core/error.h"
#include "ggmlx/core/float_types.h"

namespace ggmlx::reference {

void load_floats(DType dtype, const std::byte* src, int64_t n, float* dst) {
    const auto convert = [&](auto* values, auto f) { std::transform(values, values + n, dst, f); };
    switch (dtype) {
        case DType::F32:
            return convert(reinterpret_cast<const float*>(src), [](float v) { return v; });
        case DType::F16:
            return convert(reinterpret_cast<const uint16_t*>(src), f16_to_f32);
        case DType::BF16:
            return convert(reinterpret_cast<const uint16_t*>(src), bf16_to_f32);
        case DType::F8_E4M3:
            return convert(reinterpret_cast<const uint8_t*>(src), f8_e4m3_to_f32);
        default:
            fail(ErrorKind::InvalidArgument, "{} values cannot be read one by one", name(dtype));
    }
}

void store_floats(DType dtype, const float* src, int64_t n, std::byte* dst) {
    const auto convert = [&](auto* values, auto f) { std::transform(src, src + n, values, f); };
    switch (dtype) {
        case DType::F32:
            return convert(reinterpret_cast<float*>(dst), [](float v) { return v; });
        case DType::F16:
            return convert(reinterpret_cast<uint16_t*>(dst), f32_to_f16);
        case DType::BF16:
            return convert(reinterpret_cast<uint16_t*>(dst), f32_to_bf16);
        case DType::F8_E4M3:
            return convert(reinterpret_cast<uint8_t*>(dst), f32_to_f8_e4m3);
        default:
            fail(ErrorKind::InvalidArgument, "{} values cannot be written one by one", name(dtype));
    }
}

}  // namespace ggmlx::reference
