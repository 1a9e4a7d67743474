// Rotary position embedding: the table of a step, and its use.

#include "ggmlx/graph/ops.h"
#include "ggmlx/graph/ops/checks.h"

namespace ggmlx {

Tensor rope_table(Graph& g, Tensor positions, RopeTableParams params) {
    checks::array(Op::RopeTable, "positions", positions, DType::I32, 1, "[n_tokens]");
    require(!params.inv_freq.empty(), ErrorKind::InvalidArgument, "rope_table: inv_freq has no values");
    const auto n_pairs = static_cast<int64_t>(params.inv_freq.size());
    return g.add_node(Op::RopeTable, std::move(params), {positions},
                      {{DType::F32, {positions.dim(0), n_pairs, 2}, ""}})[0];
}

Tensor rope(Graph& g, Tensor x, Tensor table, RopeParams params) {
    checks::array(Op::Rope, "x", x, DType::F32, 3, "[n_tokens, n_head, head_dim]");
    checks::array(Op::Rope, "table", table, DType::F32, 3, "[n_tokens, n_pairs, 2]");
    checks::shape(Op::Rope, "table", table, {x.dim(0), table.dim(1), 2});
    const int64_t end = params.first + 2 * table.dim(1);
    require(params.first >= 0 && end <= x.dim(2), ErrorKind::InvalidArgument,
            "rope: values {} to {} of a head are to be rotated but {} has heads of {}", params.first, end,
            checks::label("x", x), x.dim(2));
    return g.add_node(Op::Rope, params, {x, table}, {{DType::F32, x.shape(), ""}})[0];
}

}  // namespace ggmlx
