#include "ggmlx/graph/graph.h"

#include <algorithm>

namespace ggmlx {
namespace {

/// A name without the scope's prefix; what has no name is told by what it is.
std::string short_name(Tensor t, const std::string& scope) {
    const std::string& full = t.name();
    if (full.empty()) return "?";
    const bool in_scope = !scope.empty() && full.size() > scope.size() + 1 && full[scope.size()] == '.' &&
                          full.compare(0, scope.size(), scope) == 0;
    return in_scope ? full.substr(scope.size() + 1) : full;
}

bool has_inherited_name(const TensorInfo& info) { return info.alias_of && info.alias_of->name == info.name; }

}  // namespace

TensorInfo& Graph::new_tensor(TensorKind kind, std::string name, DType dtype, Shape shape) {
    tensors_.push_back({.name = std::move(name), .dtype = dtype, .shape = shape, .kind = kind, .id = n_tensors()});
    return tensors_.back();
}

TensorInfo& Graph::own(Tensor tensor, std::string_view what) {
    require(bool(tensor), ErrorKind::InvalidArgument, "{}: the tensor is missing", what);
    const int32_t id = tensor.info().id;
    require(id >= 0 && id < n_tensors() && &tensors_[static_cast<size_t>(id)] == &tensor.info(),
            ErrorKind::InvalidArgument, "{}: {} is no tensor of this graph", what, tensor.name());
    return tensors_[static_cast<size_t>(id)];
}

Tensor Graph::input(std::string name, DType dtype, Shape shape) {
    require(!name.empty(), ErrorKind::InvalidArgument, "an input of a graph needs a name");
    for (Tensor t : inputs_)
        require(t.name() != name, ErrorKind::InvalidArgument, "two inputs of a graph are called {}", name);
    inputs_.push_back(Tensor(&new_tensor(TensorKind::Input, std::move(name), dtype, shape)));
    return inputs_.back();
}

void Graph::output(Tensor value, std::string name) {
    own(value, "output " + name);
    for (const Output& o : outputs_)
        require(o.name != name, ErrorKind::InvalidArgument, "two outputs of a graph are called {}", name);
    outputs_.push_back({value, std::move(name)});
}

void Graph::set_name(Tensor value, std::string name) { own(value, "name " + name).name = std::move(name); }

std::vector<Tensor> Graph::add_node(Op op, OpParams params, std::vector<Tensor> inputs,
                                    std::vector<OutputSpec> outputs) {
    Node node{.op = op, .params = std::move(params), .inputs = std::move(inputs), .outputs = {}, .scope = scope_};
    for (OutputSpec& spec : outputs) {
        std::string name = !spec.name.empty() ? std::move(spec.name)
                           : scope_.empty()   ? std::string(ggmlx::name(op))
                                              : scope_ + "." + std::string(ggmlx::name(op));
        TensorInfo& value = new_tensor(TensorKind::Value, std::move(name), spec.dtype, spec.shape);
        value.producer = static_cast<int32_t>(nodes_.size());
        node.outputs.push_back(Tensor(&value));
    }
    nodes_.push_back(std::move(node));
    return nodes_.back().outputs;
}

Tensor Graph::add_alias(Tensor of, Shape shape, int32_t producer) {
    require(shape.n_elements() == of.shape().n_elements(), ErrorKind::InvalidArgument,
            "reshape: {} is {} and cannot be seen as {}", of.name(), of.shape().to_string(), shape.to_string());
    TensorInfo& alias = new_tensor(TensorKind::Value, of.name(), of.dtype(), shape);
    alias.role = of.info().role;
    alias.alias_of = &of.info();
    alias.producer = producer;
    if (producer >= 0) nodes_.at(static_cast<size_t>(producer)).outputs.push_back(Tensor(&alias));
    return Tensor(&alias);
}

Tensor Graph::find(std::string_view name) const {
    auto found = std::find_if(tensors_.rbegin(), tensors_.rend(),
                              [&](const TensorInfo& t) { return t.name == name && !has_inherited_name(t); });
    return found == tensors_.rend() ? Tensor() : Tensor(&*found);
}

std::string Graph::to_string() const {
    std::string text;
    for (size_t i = 0; i < nodes_.size(); ++i) {
        const Node& n = nodes_[i];
        text += fmt::format("{}{}{} {}(", i, n.scope.empty() ? "" : " ", n.scope, name(n.op));
        for (size_t k = 0; k < n.inputs.size(); ++k) text += (k ? ", " : "") + short_name(n.inputs[k], n.scope);
        text += ") -> ";
        for (size_t k = 0; k < n.outputs.size(); ++k)
            text += fmt::format("{}{} {}", k ? ", " : "", n.outputs[k].shape().to_string(), name(n.outputs[k].dtype()));
        text += "\n";
    }
    return text;
}

}  // namespace ggmlx
