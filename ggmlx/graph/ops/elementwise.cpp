// Ops that work on each value by itself, and those that only move values: slice, concat, reshape.

#include "ggmlx/graph/ops.h"
#include "ggmlx/graph/ops/checks.h"

namespace ggmlx {
namespace {

Tensor binary(Graph& g, Op op, Tensor a, Tensor b) {
    checks::rows(op, "a", a);
    checks::dtype(op, "b", b, DType::F32);
    require(b.shape() == a.shape() || b.shape() == Shape{a.dim(-1)}, ErrorKind::InvalidArgument,
            "{}: {} is {} but {} is {}; b must have the shape of a or of its last dim", name(op), checks::label("a", a),
            a.shape().to_string(), checks::label("b", b), b.shape().to_string());
    return g.add_node(op, {}, {a, b}, {{DType::F32, a.shape(), ""}})[0];
}

/// The shape of rows of n values in the place of x's rows.
Shape with_row_length(const Shape& x, int64_t n) {
    std::vector<int64_t> dims;
    for (int i = 0; i + 1 < x.rank(); ++i) dims.push_back(x[i]);
    dims.push_back(n);
    return Shape(dims);
}

}  // namespace

Tensor add(Graph& g, Tensor a, Tensor b) { return binary(g, Op::Add, a, b); }
Tensor mul(Graph& g, Tensor a, Tensor b) { return binary(g, Op::Mul, a, b); }

Tensor scale(Graph& g, Tensor x, float factor) {
    checks::dtype(Op::Scale, "x", x, DType::F32);
    return g.add_node(Op::Scale, ScaleParams{factor}, {x}, {{DType::F32, x.shape(), ""}})[0];
}

Tensor clamp(Graph& g, Tensor x, float limit) {
    checks::dtype(Op::Clamp, "x", x, DType::F32);
    require(limit > 0, ErrorKind::InvalidArgument, "clamp: limit is {} but must be positive", limit);
    return g.add_node(Op::Clamp, ClampParams{limit}, {x}, {{DType::F32, x.shape(), ""}})[0];
}

Tensor sigmoid_gate(Graph& g, Tensor x, Tensor gate) {
    checks::array(Op::SigmoidGate, "x", x, DType::F32, 2, "[n_tokens, n]");
    checks::array(Op::SigmoidGate, "gate", gate, DType::F32, {x.dim(0), 1});
    return g.add_node(Op::SigmoidGate, {}, {x, gate}, {{DType::F32, x.shape(), ""}})[0];
}

Tensor slice(Graph& g, Tensor x, int64_t first, int64_t n) {
    checks::rows(Op::Slice, "x", x);
    require(first >= 0 && n >= 1 && first + n <= x.dim(-1), ErrorKind::InvalidArgument,
            "slice: values {} to {} of a row are wanted but {} has rows of {}", first, first + n, checks::label("x", x),
            x.dim(-1));
    return g.add_node(Op::Slice, SliceParams{first}, {x}, {{DType::F32, with_row_length(x.shape(), n), ""}})[0];
}

Tensor concat(Graph& g, Tensor a, Tensor b) {
    checks::rows(Op::Concat, "a", a);
    checks::rows(Op::Concat, "b", b);
    checks::shape(Op::Concat, "b", b, with_row_length(a.shape(), b.dim(-1)));
    const Shape shape = with_row_length(a.shape(), a.dim(-1) + b.dim(-1));
    return g.add_node(Op::Concat, {}, {a, b}, {{DType::F32, shape, ""}})[0];
}

Tensor swiglu(Graph& g, Tensor gate, Tensor up, SwiGLUParams params) {
    checks::rows(Op::SwiGLU, "gate", gate);
    checks::array(Op::SwiGLU, "up", up, DType::F32, gate.shape());
    return g.add_node(Op::SwiGLU, params, {gate, up}, {{DType::F32, gate.shape(), ""}})[0];
}

Tensor reshape(Graph& g, Tensor x, Shape shape) {
    require(bool(x), ErrorKind::InvalidArgument, "reshape: x is missing");
    require(!is_block(x.dtype()), ErrorKind::InvalidArgument, "reshape: {} is {}, whose tiles have one shape only",
            checks::label("x", x), name(x.dtype()));
    return g.add_alias(x, shape, -1);
}

}  // namespace ggmlx
