#pragma once
// Fills the table of one ISA. The last include of every isa/*.cpp.

#include "ggmlx/backend/cpu/kernels/attention.inl.h"
#include "ggmlx/backend/cpu/kernels/cache_rows.inl.h"
#include "ggmlx/backend/cpu/kernels/matmul_groups.inl.h"
#include "ggmlx/backend/cpu/kernels/peak.inl.h"
#include "ggmlx/backend/cpu/kernels/quantize.inl.h"
#include "ggmlx/backend/cpu/kernels/read.inl.h"
#include "ggmlx/backend/cpu/kernels/rows.inl.h"

namespace ggmlx {

template <class Isa, class Row>
constexpr void add_cache_type(CpuKernels& k, DType dtype) {
    k.store_row[static_cast<int>(dtype)] = store_cache_row<Isa, Row>;
    k.unpack_keys[static_cast<int>(dtype)] = unpack_keys<Isa, Row>;
    k.unpack_values[static_cast<int>(dtype)] = unpack_values<Isa, Row>;
}

/// Products with the tiles of types that have an integer dot product.
template <class Isa>
constexpr MatmulKernels make_tile_kernels() {
    MatmulKernels k{};
    k.int8_peak = int8_peak<Isa>;
    for_each_tile([&](auto of) {
        using Tile = typename decltype(of)::Tile;
        k.matmul[static_cast<int>(Tile::kType)] = matmul_tiles<Isa, Tile>;
        k.matmul_groups[static_cast<int>(Tile::kType)] = matmul_groups<Isa, Tile>;
    });
    return k;
}

template <class Isa>
constexpr CpuKernels make_kernels(const char* name) {
    CpuKernels k{};
    static_cast<MatmulKernels&>(k) = make_tile_kernels<Isa>();
    k.name = name;
    k.float_name = name;
    k.read_lines = read_lines<Isa>;
    k.quantize_row = quantize_row<Isa>;
    k.matmul[static_cast<int>(DType::F32)] = matmul_plain<Isa, PlainF32<Isa>>;
    k.matmul[static_cast<int>(DType::F16)] = matmul_plain<Isa, PlainF16<Isa>>;
    k.matmul[static_cast<int>(DType::BF16)] = matmul_plain<Isa, PlainBF16<Isa>>;
    k.matmul[static_cast<int>(DType::MXFP8)] = matmul_mxfp8<Isa>;
    k.add = add_rows<Isa>;
    k.mul = mul_rows<Isa>;
    k.scale = scale_row<Isa>;
    k.add_scaled = add_scaled_row<Isa>;
    k.divide = divide_row<Isa>;
    k.swiglu = swiglu_row<Isa>;
    k.rms_norm = rms_norm_row<Isa>;
    k.softmax = softmax_row<Isa>;
    k.sigmoid = sigmoid_row<Isa>;
    k.largest = largest_of_row<Isa>;
    k.exp_sum = exp_row<Isa>;
    add_cache_type<Isa, PlainRow<Isa, PlainF32<Isa>>>(k, DType::F32);
    add_cache_type<Isa, PlainRow<Isa, PlainF16<Isa>>>(k, DType::F16);
    add_cache_type<Isa, PlainRow<Isa, PlainBF16<Isa>>>(k, DType::BF16);
    add_cache_type<Isa, PlainRow<Isa, PlainF8<Isa>>>(k, DType::F8_E4M3);
    add_cache_type<Isa, BlockRow<Isa>>(k, DType::Q8_0);
    k.attention_scores = attention_scores<Isa>;
    k.attention_values = attention_values<Isa>;
    return k;
}

}  // namespace ggmlx
