#include "ggmlx/graph/ops.h"
#include "ggmlx/graph/ops/checks.h"

namespace ggmlx {

TopK top_k(Graph& g, Tensor x, int32_t k, Tensor rows) {
    checks::array(Op::TopK, "x", x, DType::F32, 2, "[n_tokens, n]");
    require(k >= 1 && k <= x.dim(1), ErrorKind::InvalidArgument, "top_k: k is {} but {} has {} columns", k,
            checks::label("x", x), x.dim(1));
    std::vector<Tensor> inputs = {x};
    if (rows) {
        checks::array(Op::TopK, "rows", rows, DType::I32, Shape{x.dim(0)});
        inputs.push_back(rows);
    }
    const Shape chosen{x.dim(0), k};
    auto out =
        g.add_node(Op::TopK, TopKParams{k}, std::move(inputs), {{DType::F32, chosen, ""}, {DType::I32, chosen, ""}});
    return {out[0], out[1]};
}

}  // namespace ggmlx
