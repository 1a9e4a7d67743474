// matmul and head_matmul: activations are quantized where the type has integer products, then few or many columns.

#include <algorithm>

#include "ggmlx/backend/cuda/kernels/products.cuh"
#include "ggmlx/backend/cuda/ops.h"

namespace ggmlx::cuda {
namespace {

/// y[t][h] = weight[h] · x[t][h] for n_heads matrices; matmul has one.
struct Product {
    MatrixStack m;
    int64_t n_heads, n_tokens;
    const float* x;
    float* y;
    std::byte* scratch;
    StatusWord* status;
};

/// Columns of one set of groups.
int width_of(int64_t n_tokens) { return n_tokens == 1 ? 1 : kGroupWidth; }

size_t scratch_of(DType dtype, int64_t n_heads, int64_t n_tokens, int64_t n_in) {
    if (!has_integer_products(dtype)) return 0;
    const int width = width_of(n_tokens);
    return activation_bytes(n_heads * ceil_div(n_tokens, width), width, n_in);
}

Activations quantize(const Product& p, const Launch& launch) {
    Activations a;
    const int width = width_of(p.n_tokens);
    const int64_t n_groups = p.n_heads * ceil_div(p.n_tokens, width);
    place_activations(p.scratch, n_groups, width, p.m.n_in, a);
    quantize_columns({.x = p.x,
                      .n_in = p.m.n_in,
                      .n_columns = p.n_tokens,
                      .n_groups = n_groups,
                      .n_sets = p.n_heads,
                      .report_divisor = p.n_heads},
                     a, is_interleaved(p.m.dtype), p.status, launch);
    return a;
}

/// Tokens [first, first + n), n <= kFewColumns.
void multiply_few_tokens(const Product& p, const Activations& a, int64_t first, int64_t n, const Launch& launch) {
    FewColumns args;
    args.m = p.m;
    args.n_products = p.n_heads;
    args.n_columns = static_cast<int>(n);
    args.a = a;
    args.x = p.x + first * p.n_heads * p.m.n_in;
    args.x_stride = p.m.n_in;
    args.x_column_stride = p.n_heads * p.m.n_in;
    args.y = p.y + first * p.n_heads * p.m.n_out;
    args.y_stride = p.m.n_out;
    args.y_column_stride = p.n_heads * p.m.n_out;
    multiply_few(args, launch);
}

void run(const Product& p, const Launch& launch) {
    if (p.n_tokens == 0 || p.m.n_out == 0) return;
    if (!has_integer_products(p.m.dtype)) {
        for (int64_t t = 0; t < p.n_tokens; t += kFewColumns)
            multiply_few_tokens(p, {}, t, std::min(kFewColumns, p.n_tokens - t), launch);
        return;
    }
    const Activations a = quantize(p, launch);
    if (p.n_tokens <= kFewColumns) return multiply_few_tokens(p, a, 0, p.n_tokens, launch);
    const int64_t n_groups = ceil_div(p.n_tokens, kGroupWidth);
    for (int64_t h = 0; h < p.n_heads; ++h) {
        ManyColumns args;
        args.m = p.m;
        args.m.data += h * p.m.stride;
        args.a = a;
        args.a.q += a.block_index(h * n_groups, 0) * kGroupWidth * 32;
        args.a.meta += a.block_index(h * n_groups, 0) * kGroupWidth;
        args.n_groups = n_groups;
        args.n_columns = p.n_tokens;
        args.y = p.y + h * p.m.n_out;
        args.y_stride = p.n_heads * p.m.n_out;
        multiply_many(args, launch);
    }
}

}  // namespace

void matmul(const OpCall& call, const Launch& launch) {
    const TensorView &w = call.in[0], &x = call.in[1];
    Product p{{}, 1, x.shape[0], x.as<const float>(), call.out[0].as<float>(), call.scratch, status_word(call)};
    p.m.data = w.data;
    p.m.dtype = w.dtype;
    p.m.n_out = w.shape[0];
    p.m.n_in = w.shape[1];
    run(p, launch);
}

void head_matmul(const OpCall& call, const Launch& launch) {
    const TensorView &w = call.in[0], &x = call.in[1];
    Product p{{},           w.shape[0],       x.shape[0], x.as<const float>(), call.out[0].as<float>(),
              call.scratch, status_word(call)};
    p.m.data = w.data;
    p.m.dtype = w.dtype;
    p.m.n_out = w.shape[1];
    p.m.n_in = w.shape[2];
    p.m.stride = slice_bytes(w.dtype, w.shape);
    p.m.n_slots = w.shape[0];
    run(p, launch);
}

size_t matmul_scratch(const Node& node) {
    const Tensor w = node.inputs[0], x = node.inputs[1];
    return scratch_of(w.dtype(), 1, x.dim(0), w.dim(1));
}

size_t head_matmul_scratch(const Node& node) {
    const Tensor w = node.inputs[0], x = node.inputs[1];
    return scratch_of(w.dtype(), w.dim(0), x.dim(0), w.dim(2));
}

}  // namespace ggmlx::cuda
