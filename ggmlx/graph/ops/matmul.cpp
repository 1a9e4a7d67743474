// Ops that read a weight matrix: matmul, head_matmul and get_rows.

#include "ggmlx/graph/ops.h"
#include "ggmlx/graph/ops/checks.h"

namespace ggmlx {

Tensor matmul(Graph& g, Tensor weight, Tensor x) {
    checks::rank(Op::Matmul, "weight", weight, 2, "[n_out, n_in]");
    checks::weight_dtype(Op::Matmul, "weight", weight);
    checks::array(Op::Matmul, "x", x, DType::F32, 2, "[n_tokens, n_in]");
    require(weight.dim(1) == x.dim(1), ErrorKind::InvalidArgument, "matmul: {} is {} but x has {} columns",
            checks::label("weight", weight), weight.shape().to_string(), x.dim(1));
    return g.add_node(Op::Matmul, {}, {weight, x}, {{DType::F32, {x.dim(0), weight.dim(0)}, ""}})[0];
}

Tensor head_matmul(Graph& g, Tensor weight, Tensor x) {
    constexpr Op op = Op::HeadMatmul;
    checks::rank(op, "weight", weight, 3, "[n_head, n_out, n_in]");
    checks::weight_dtype(op, "weight", weight);
    checks::array(op, "x", x, DType::F32, 3, "[n_tokens, n_head, n_in]");
    checks::shape(op, "x", x, {x.dim(0), weight.dim(0), weight.dim(2)});
    return g.add_node(op, {}, {weight, x}, {{DType::F32, {x.dim(0), weight.dim(0), weight.dim(1)}, ""}})[0];
}

Tensor get_rows(Graph& g, Tensor table, Tensor ids) {
    checks::rank(Op::GetRows, "table", table, 2, "[n_rows, n_cols]");
    checks::weight_dtype(Op::GetRows, "table", table);
    checks::array(Op::GetRows, "ids", ids, DType::I32, 1, "[n]");
    return g.add_node(Op::GetRows, {}, {table, ids}, {{DType::F32, {ids.dim(0), table.dim(1)}, ""}})[0];
}

}  // namespace ggmlx
