// Ops that work on each value by itself, and reshape, which works on none.

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

}  // namespace

Tensor add(Graph& g, Tensor a, Tensor b) { return binary(g, Op::Add, a, b); }
Tensor mul(Graph& g, Tensor a, Tensor b) { return binary(g, Op::Mul, a, b); }

Tensor scale(Graph& g, Tensor x, float factor) {
    checks::dtype(Op::Scale, "x", x, DType::F32);
    return g.add_node(Op::Scale, ScaleParams{factor}, {x}, {{DType::F32, x.shape(), ""}})[0];
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
