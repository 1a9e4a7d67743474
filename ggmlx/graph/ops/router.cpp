// The choice of experts.

#include "ggmlx/graph/ops.h"
#include "ggmlx/graph/ops/checks.h"

namespace ggmlx {
namespace {

void check_numbers(const RouterParams& p, int64_t n_expert) {
    require(p.k >= 1 && p.k <= n_expert, ErrorKind::InvalidArgument, "router: k is {} but there are {} experts", p.k,
            n_expert);
    require(p.n_groups >= 1 && n_expert % p.n_groups == 0, ErrorKind::InvalidArgument,
            "router: {} experts do not form {} groups of equal size", n_expert, p.n_groups);
    const int64_t group_size = n_expert / p.n_groups;
    require(p.groups_used >= 1 && p.groups_used <= p.n_groups && p.k <= p.groups_used * group_size,
            ErrorKind::InvalidArgument, "router: {} of {} groups of {} experts do not give {} experts", p.groups_used,
            p.n_groups, group_size, p.k);
    require(p.group_best >= 1 && p.group_best <= group_size, ErrorKind::InvalidArgument,
            "router: the {} best of a group are asked for but groups have {} experts", p.group_best, group_size);
}

}  // namespace

Routing router(Graph& g, Tensor logits, Tensor rows, Tensor bias, RouterParams params) {
    constexpr Op op = Op::Router;
    checks::array(op, "logits", logits, DType::F32, 2, "[n_tokens, n_expert]");
    checks::array(op, "rows", rows, DType::I32, Shape{logits.dim(0)});
    check_numbers(params, logits.dim(1));
    std::vector<Tensor> inputs = {logits, rows};
    if (bias) {
        checks::array(op, "bias", bias, DType::F32, Shape{logits.dim(1)});
        inputs.push_back(bias);
    }
    const Shape chosen{logits.dim(0), params.k};
    auto out = g.add_node(op, params, std::move(inputs), {{DType::F32, chosen, ""}, {DType::I32, chosen, ""}});
    return {out[0], out[1]};
}

}  // namespace ggmlx
