// Ops on cached keys and values.

#include "ggmlx/graph/ops.h"
#include "ggmlx/graph/ops/checks.h"

namespace ggmlx {
namespace {

void check_cache(Op op, std::string_view argument, Tensor cache) {
    checks::rank(op, argument, cache, 4, "[n_blocks, n_head_kv, block_len, head_dim]");
    require(cache.storage().kind() == TensorKind::State, ErrorKind::InvalidArgument,
            "{}: {} must be a state, which outlives the graph", name(op), checks::label(argument, cache));
    const DType t = cache.dtype();
    require(is_cache_type(t), ErrorKind::InvalidArgument, "{}: {} is {} but must be one of {}", name(op),
            checks::label(argument, cache), name(t), kCacheTypeNames);
    require(!is_block(t) || cache.dim(2) % kTileRows == 0, ErrorKind::InvalidArgument,
            "{}: {} is {} with blocks of {} rows, which must be a multiple of {}", name(op),
            checks::label(argument, cache), name(t), cache.dim(2), kTileRows);
}

}  // namespace

Tensor cache_append(Graph& g, Tensor cache, Tensor x, Tensor slots) {
    check_cache(Op::CacheAppend, "cache", cache);
    checks::array(Op::CacheAppend, "x", x, DType::F32, 3, "[n_tokens, n_head_kv, head_dim]");
    require(x.dim(1) == cache.dim(1) && x.dim(2) == cache.dim(3), ErrorKind::InvalidArgument,
            "cache_append: {} is {} but {} has {} heads of {}", checks::label("x", x), x.shape().to_string(),
            checks::label("cache", cache), cache.dim(1), cache.dim(3));
    checks::array(Op::CacheAppend, "slots", slots, DType::I32, Shape{x.dim(0)});
    const auto node = static_cast<int32_t>(g.nodes().size());
    g.add_node(Op::CacheAppend, {}, {cache, x, slots}, {});
    return g.add_alias(cache, cache.shape(), node);
}

Tensor attention(Graph& g, const AttentionInputs& in, AttentionParams params) {
    constexpr Op op = Op::Attention;
    checks::array(op, "q", in.q, DType::F32, 3, "[n_tokens, n_head, head_dim]");
    check_cache(op, "k_cache", in.k_cache);
    check_cache(op, "v_cache", in.v_cache);
    const int64_t n_tokens = in.q.dim(0), n_head = in.q.dim(1), n_head_kv = in.k_cache.dim(1);
    checks::shape(op, "k_cache", in.k_cache, {in.k_cache.dim(0), n_head_kv, in.k_cache.dim(2), in.q.dim(2)});
    checks::shape(op, "v_cache", in.v_cache, {in.k_cache.dim(0), n_head_kv, in.k_cache.dim(2), in.v_cache.dim(3)});
    require(n_head_kv > 0 && n_head % n_head_kv == 0, ErrorKind::InvalidArgument,
            "attention: {} has {} heads, no multiple of the {} of {}", checks::label("q", in.q), n_head, n_head_kv,
            checks::label("k_cache", in.k_cache));
    checks::array(op, "block_table", in.block_table, DType::I32, 2, "[n_sequences, max_blocks]");
    checks::array(op, "sequence", in.sequence, DType::I32, Shape{n_tokens});
    checks::array(op, "positions", in.positions, DType::I32, Shape{n_tokens});
    require(params.window >= 0, ErrorKind::InvalidArgument, "attention: window is {} but must not be negative",
            params.window);
    require(params.head_dim_v >= 0 && params.head_dim_v <= in.v_cache.dim(3), ErrorKind::InvalidArgument,
            "attention: values of {} are to be read from {}, whose rows have {}", params.head_dim_v,
            checks::label("v_cache", in.v_cache), in.v_cache.dim(3));
    std::vector<Tensor> inputs = {in.q, in.k_cache, in.v_cache, in.block_table, in.sequence, in.positions};
    if (in.sinks) {
        checks::array(op, "sinks", in.sinks, DType::F32, Shape{n_head});
        inputs.push_back(in.sinks);
    }
    const int64_t head_dim_v = params.head_dim_v > 0 ? params.head_dim_v : in.v_cache.dim(3);
    return g.add_node(op, params, std::move(inputs), {{DType::F32, {n_tokens, n_head * head_dim_v}, ""}})[0];
}

}  // namespace ggmlx
