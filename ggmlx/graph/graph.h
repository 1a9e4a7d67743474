#pragma once
// Graph: what is to be computed, as nodes in execution order. It owns its inputs and values, refers to weights and
// states of a TensorSet, and knows neither devices nor memory. Builders in ops.h append nodes; after that a graph is
// read only.

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "ggmlx/core/tensor.h"
#include "ggmlx/graph/op.h"

namespace ggmlx {

struct Node {
    Op op;
    OpParams params;
    std::vector<Tensor> inputs;  ///< in the order of op.h; an absent optional one is left out at the end
    std::vector<Tensor> outputs;
    std::string scope;  ///< where in the model, "blk.3"; for messages
};

/// Type, shape and (maybe empty) name of a node's output.
struct OutputSpec {
    DType dtype;
    Shape shape;
    std::string name;
};

class Graph {
  public:
    Graph() = default;
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    Graph(Graph&&) = default;
    Graph& operator=(Graph&&) = default;

    /// A tensor that is set before every run. Names must be given and unique among inputs, else invalid_argument.
    Tensor input(std::string name, DType dtype, Shape shape);
    /// Keeps a value after the run so that it can be read, under this name. Throws invalid_argument if the name is
    /// taken by another output or the tensor is not this graph's.
    void output(Tensor value, std::string name);
    /// Names that follow get this prefix: "blk.3" makes values "blk.3.rms_norm".
    void set_scope(std::string scope) { scope_ = std::move(scope); }
    /// Gives a value a name of its own ("blk.3.ffn_out"), by which it can be dumped. Throws as output().
    void set_name(Tensor value, std::string name);

    /// For builders: appends a node and makes its outputs. An output whose spec has no name is called scope.op.
    std::vector<Tensor> add_node(Op op, OpParams params, std::vector<Tensor> inputs, std::vector<OutputSpec> outputs);
    /// For builders: a second handle to the same bytes under the same name, with another shape (same number of
    /// elements). producer -1: a plain reshape; else the node that writes these bytes, which gets it as an output.
    Tensor add_alias(Tensor of, Shape shape, int32_t producer);

    std::span<const Node> nodes() const { return nodes_; }
    std::span<const Tensor> inputs() const { return inputs_; }
    struct Output {
        Tensor tensor;
        std::string name;
    };
    std::span<const Output> outputs() const { return outputs_; }
    /// Number of tensors owned (inputs, values, aliases); ids are below it.
    int32_t n_tensors() const { return static_cast<int32_t>(tensors_.size()); }
    /// A value or input by name; empty if there is none. The last one wins when several nodes of a scope share a name;
    /// an alias that has only inherited its name is passed over.
    Tensor find(std::string_view name) const;
    /// One line per node, "12 blk.3 matmul(attn_q.weight, x) -> [5, 64] f32": the scope is left out of names in it.
    std::string to_string() const;

  private:
    std::deque<TensorInfo> tensors_;
    std::vector<Node> nodes_;
    std::vector<Tensor> inputs_;
    std::vector<Output> outputs_;
    std::string scope_;

    TensorInfo& new_tensor(TensorKind kind, std::string name, DType dtype, Shape shape);
    /// The description of a tensor of this graph; throws invalid_argument for any other.
    TensorInfo& own(Tensor tensor, std::string_view what);
};

}  // namespace ggmlx
