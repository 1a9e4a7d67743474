// Ops that relate the values of a row to their sum: rms_norm, softmax, divide_by_sum.

#include "ggmlx/graph/ops.h"
#include "ggmlx/graph/ops/checks.h"

namespace ggmlx {

Tensor rms_norm(Graph& g, Tensor x, Tensor weight, float eps) {
    checks::rows(Op::RmsNorm, "x", x);
    require(eps >= 0, ErrorKind::InvalidArgument, "rms_norm: eps is {} but must not be negative", eps);
    std::vector<Tensor> inputs = {x};
    if (weight) {
        checks::array(Op::RmsNorm, "weight", weight, DType::F32, Shape{x.dim(-1)});
        inputs.push_back(weight);
    }
    return g.add_node(Op::RmsNorm, RmsNormParams{eps}, std::move(inputs), {{DType::F32, x.shape(), ""}})[0];
}

Tensor softmax(Graph& g, Tensor x) {
    checks::rows(Op::Softmax, "x", x);
    return g.add_node(Op::Softmax, {}, {x}, {{DType::F32, x.shape(), ""}})[0];
}

Tensor divide_by_sum(Graph& g, Tensor x) {
    checks::array(Op::DivideBySum, "x", x, DType::F32, 2, "[n_tokens, n]");
    return g.add_node(Op::DivideBySum, {}, {x}, {{DType::F32, x.shape(), ""}})[0];
}

}  // namespace ggmlx
