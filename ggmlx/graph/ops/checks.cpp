#include "ggmlx/graph/ops/checks.h"

#include "ggmlx/quant/activation.h"

namespace ggmlx::checks {

std::string label(std::string_view argument, Tensor t) {
    return t && !t.name().empty() ? std::string(argument) + " " + t.name() : std::string(argument);
}

void given(Op op, std::string_view argument, Tensor t) {
    require(bool(t), ErrorKind::InvalidArgument, "{}: {} is missing", name(op), argument);
}

void dtype(Op op, std::string_view argument, Tensor t, DType wanted) {
    given(op, argument, t);
    require(t.dtype() == wanted, ErrorKind::InvalidArgument, "{}: {} is {} but must be {}", name(op),
            label(argument, t), name(t.dtype()), name(wanted));
}

void rank(Op op, std::string_view argument, Tensor t, int wanted, std::string_view form) {
    given(op, argument, t);
    require(t.shape().rank() == wanted, ErrorKind::InvalidArgument, "{}: {} is {} but must be {}", name(op),
            label(argument, t), t.shape().to_string(), form);
}

void shape(Op op, std::string_view argument, Tensor t, const Shape& wanted) {
    given(op, argument, t);
    require(t.shape() == wanted, ErrorKind::InvalidArgument, "{}: {} is {} but must be {}", name(op),
            label(argument, t), t.shape().to_string(), wanted.to_string());
}

void array(Op op, std::string_view argument, Tensor t, DType wanted, int n_dims, std::string_view form) {
    dtype(op, argument, t, wanted);
    rank(op, argument, t, n_dims, form);
}

void array(Op op, std::string_view argument, Tensor t, DType wanted, const Shape& wanted_shape) {
    dtype(op, argument, t, wanted);
    shape(op, argument, t, wanted_shape);
}

void rows(Op op, std::string_view argument, Tensor t) {
    dtype(op, argument, t, DType::F32);
    require(t.shape().rank() >= 1, ErrorKind::InvalidArgument, "{}: {} has no dims but must be [.., n]", name(op),
            label(argument, t));
}

void weight_dtype(Op op, std::string_view argument, Tensor t) {
    given(op, argument, t);
    const DTypeInfo& type = info(t.dtype());
    require(type.is_block || t.dtype() == DType::F32 || t.dtype() == DType::F16 || t.dtype() == DType::BF16,
            ErrorKind::InvalidArgument, "{}: {} is {}, which is no type of weights", name(op), label(argument, t),
            type.name);
    require(type.block_len <= kActivationBlock || t.dim(-1) % type.block_len == 0, ErrorKind::InvalidArgument,
            "{}: {} is {} but its rows of {} values are no multiple of {}", name(op), label(argument, t), type.name,
            t.dim(-1), type.block_len);
}

}  // namespace ggmlx::checks
