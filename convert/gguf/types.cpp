#include "convert/gguf/types.h"

namespace convert {
namespace {

using ggmlx::DType;

constexpr GgufTypeInfo same(GgufType type, std::string_view name, int64_t len, int64_t bytes, DType dtype) {
    return {type, name, len, bytes, dtype, true};
}
/// No type here has these values: the next one that has more bits, or as many.
constexpr GgufTypeInfo near(GgufType type, std::string_view name, int64_t len, int64_t bytes, DType dtype) {
    return {type, name, len, bytes, dtype, false};
}
constexpr GgufTypeInfo unread(GgufType type, std::string_view name, int64_t len, int64_t bytes) {
    return {type, name, len, bytes, std::nullopt, false};
}

constexpr GgufTypeInfo kGgufTypes[] = {
    same(GgufType::F32, "f32", 1, 4, DType::F32),
    same(GgufType::F16, "f16", 1, 2, DType::F16),
    same(GgufType::BF16, "bf16", 1, 2, DType::BF16),
    same(GgufType::Q4_0, "q4_0", 32, 18, DType::Q4_0),
    same(GgufType::Q4_1, "q4_1", 32, 20, DType::Q4_1),
    same(GgufType::Q8_0, "q8_0", 32, 34, DType::Q8_0),
    same(GgufType::Q4_K, "q4_k", 256, 144, DType::Q4_K),
    same(GgufType::Q6_K, "q6_k", 256, 210, DType::Q6_K),
    same(GgufType::MXFP4, "mxfp4", 32, 17, DType::MXFP4),
    near(GgufType::Q5_0, "q5_0", 32, 22, DType::Q6_K),
    near(GgufType::Q5_1, "q5_1", 32, 24, DType::Q6_K),
    near(GgufType::Q2_K, "q2_k", 256, 84, DType::Q4_K),
    near(GgufType::Q3_K, "q3_k", 256, 110, DType::Q4_K),
    near(GgufType::Q5_K, "q5_k", 256, 176, DType::Q6_K),
    near(GgufType::Q8_K, "q8_k", 256, 292, DType::Q8_0),
    near(GgufType::IQ4_NL, "iq4_nl", 32, 18, DType::Q4_K),
    near(GgufType::IQ4_XS, "iq4_xs", 256, 136, DType::Q4_K),
    unread(GgufType::Q8_1, "q8_1", 32, 40),
    unread(GgufType::IQ2_XXS, "iq2_xxs", 256, 66),
    unread(GgufType::IQ2_XS, "iq2_xs", 256, 74),
    unread(GgufType::IQ3_XXS, "iq3_xxs", 256, 98),
    unread(GgufType::IQ1_S, "iq1_s", 256, 50),
    unread(GgufType::IQ3_S, "iq3_s", 256, 110),
    unread(GgufType::IQ2_S, "iq2_s", 256, 82),
    unread(GgufType::IQ1_M, "iq1_m", 256, 56),
    unread(GgufType::TQ1_0, "tq1_0", 256, 54),
    unread(GgufType::TQ2_0, "tq2_0", 256, 66),
    unread(GgufType::NVFP4, "nvfp4", 64, 36),
    unread(GgufType::Q1_0, "q1_0", 128, 18),
    unread(GgufType::I8, "i8", 1, 1),
    unread(GgufType::I16, "i16", 1, 2),
    unread(GgufType::I32, "i32", 1, 4),
    unread(GgufType::I64, "i64", 1, 8),
    unread(GgufType::F64, "f64", 1, 8),
};

}  // namespace

const GgufTypeInfo* find_gguf_type(uint32_t id) {
    for (const GgufTypeInfo& info : kGgufTypes)
        if (static_cast<uint32_t>(info.type) == id) return &info;
    return nullptr;
}

}  // namespace convert
