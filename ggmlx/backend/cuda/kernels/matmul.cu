// matmul and head_matmul: activations are quantized where the type has integer products, then few or many columns.

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

/// Large chunks where there are enough of them to fill the device.
int chunk_groups(int64_t n_out, int64_t n_groups, int n_sm) {
    const int64_t n_blocks = ceil_div(n_out, 64) * ceil_div(n_groups, kChunkGroups);
    return n_blocks >= 2 * n_sm ? kChunkGroups : kSmallChunkGroups;
}

Activations quantize(const Product& p, const Launch& launch) {
    const int width = width_of(p.n_tokens);
    const int64_t n_groups = p.n_heads * ceil_div(p.n_tokens, width);
    const Activations a = place_activations(p.scratch, n_groups, width, p.m.n_in);
    quantize_columns({.x = p.x,
                      .n_in = p.m.n_in,
                      .n_columns = p.n_tokens,
                      .n_groups = n_groups,
                      .n_sets = p.n_heads,
                      .report_divisor = p.n_heads},
                     a, is_interleaved(p.m.dtype), p.status, launch);
    return a;
}

void multiply_few_tokens(const Product& p, const Activations& a, const Launch& launch) {
    FewColumns args;
    args.m = p.m;
    args.n_products = p.n_heads;
    args.n_columns = static_cast<int>(p.n_tokens);
    args.a = a;
    args.x = p.x;
    args.x_stride = p.m.n_in;
    args.x_column_stride = p.n_heads * p.m.n_in;
    args.y = p.y;
    args.y_stride = p.m.n_out;
    args.y_column_stride = p.n_heads * p.m.n_out;
    multiply_few(args, launch);
}

void multiply_many_floats(const Product& p, const Launch& launch) {
    for (int64_t h = 0; h < p.n_heads; ++h) {
        FloatColumns args;
        args.n_out = p.m.n_out;
        args.n_in = p.m.n_in;
        args.n_columns = p.n_tokens;
        args.x = p.x + h * p.m.n_in;
        args.x_stride = p.n_heads * p.m.n_in;
        args.y = p.y + h * p.m.n_out;
        args.y_stride = p.n_heads * p.m.n_out;
        multiply_floats(p.m.data + h * p.m.stride, p.m.dtype, args, launch);
    }
}

void run(const Product& p, const Launch& launch) {
    if (p.n_tokens == 0 || p.m.n_out == 0) return;
    const bool has_integers = has_integer_products(p.m.dtype), are_few = p.n_tokens <= kFewColumns;
    if (!has_integers && !are_few) return multiply_many_floats(p, launch);
    const Activations a = has_integers ? quantize(p, launch) : Activations{};
    if (are_few) return multiply_few_tokens(p, a, launch);
    const int64_t n_groups = ceil_div(p.n_tokens, kGroupWidth);
    for (int64_t h = 0; h < p.n_heads; ++h) {
        ManyColumns args;
        args.m = p.m;
        args.m.data += h * p.m.stride;
        args.a = a;
        args.a.q += a.block_index(h * n_groups, 0) * kGroupWidth * 32;
        args.a.meta += a.block_index(h * n_groups, 0) * kGroupWidth;
        args.n_groups = n_groups;
        args.chunk_groups = chunk_groups(p.m.n_out, n_groups, launch.n_sm);
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
