#pragma once
// The element types of GGUF files and what becomes of each here. One table row per type; nothing else in the project
// knows these numbers.
// Source: the type enumeration and block sizes that the `gguf` package publishes.

#include <cstdint>
#include <optional>
#include <string_view>

#include "ggmlx/core/dtype.h"

namespace convert {

/// The ids that files hold.
enum class GgufType : uint32_t {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q8_1 = 9,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    Q8_K = 15,
    IQ2_XXS = 16,
    IQ2_XS = 17,
    IQ3_XXS = 18,
    IQ1_S = 19,
    IQ4_NL = 20,
    IQ3_S = 21,
    IQ2_S = 22,
    IQ4_XS = 23,
    I8 = 24,
    I16 = 25,
    I32 = 26,
    I64 = 27,
    F64 = 28,
    IQ1_M = 29,
    BF16 = 30,
    TQ1_0 = 34,
    TQ2_0 = 35,
    MXFP4 = 39,
    NVFP4 = 40,
    Q1_0 = 41,
};

struct GgufTypeInfo {
    GgufType type = GgufType::F32;
    std::string_view name;    ///< lower case: "q5_k"
    int64_t block_len = 1;    ///< consecutive values of a row in one block
    int64_t block_bytes = 0;  ///< of one block
    /// What a tensor of this type is stored as here if nobody asks for another type; nothing if it cannot be read.
    std::optional<ggmlx::DType> dtype;
    bool exact = false;  ///< `dtype` holds the same values: nothing is rounded

    /// True for types whose values were rounded to fit blocks.
    bool is_quantized() const { return block_len > 1; }
};

/// Nothing for an id that is no type, or one that was given up (Q4_2, Q4_0_4_4 …).
const GgufTypeInfo* find_gguf_type(uint32_t id);

}  // namespace convert
