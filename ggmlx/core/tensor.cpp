#include "ggmlx/core/tensor.h"

#include <array>

namespace ggmlx {
namespace {
constexpr std::array<std::string_view, kRoleCount> kRoleNames = {
    "dense", "attention", "router", "expert", "shared_expert", "norm", "embedding", "output", "table", "cache"};
}

std::string_view name(Role role) { return kRoleNames.at(static_cast<size_t>(role)); }

std::optional<Role> role_from_id(uint32_t id) {
    return id < kRoleNames.size() ? std::optional(static_cast<Role>(id)) : std::nullopt;
}

Tensor TensorSet::add(std::string name, DType dtype, Shape shape, Role role, TensorKind kind) {
    require(kind == TensorKind::Weight || kind == TensorKind::State, ErrorKind::InvalidArgument,
            "{}: a tensor set holds weights and states only", name);
    auto [place, is_new] = by_name_.emplace(name, size());
    require(is_new, ErrorKind::InvalidArgument, "two tensors are called {}", name);
    infos_.push_back(
        {.name = std::move(name), .dtype = dtype, .shape = shape, .kind = kind, .role = role, .id = size()});
    return (*this)[size() - 1];
}

std::optional<Tensor> TensorSet::find(std::string_view name) const {
    auto it = by_name_.find(std::string(name));
    return it == by_name_.end() ? std::nullopt : std::optional((*this)[it->second]);
}

Tensor TensorSet::get(std::string_view name) const {
    auto tensor = find(name);
    require(tensor.has_value(), ErrorKind::InvalidArgument, "there is no tensor called {}", name);
    return *tensor;
}

}  // namespace ggmlx
