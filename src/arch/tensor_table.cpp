#include "src/arch/tensor_table.h"

#include <fmt/core.h>

namespace llm {

using ggmlx::Role;
using ggmlx::Shape;

void TensorTable::set_prefix(std::string here, std::string there) {
    here_ = std::move(here);
    there_ = std::move(there);
}

void TensorTable::add(std::string_view name, Shape shape, Role role, std::vector<std::string> sources,
                      bool quantizable) {
    for (std::string& source : sources) source = there_ + source;
    specs_.push_back({.name = here_ + std::string(name),
                      .shape = shape,
                      .role = role,
                      .sources = std::move(sources),
                      .quantizable = quantizable,
                      .tied_source = {},
                      .packed = {}});
}

void TensorTable::matrix(std::string_view name, std::string_view source, int64_t n_out, int64_t n_in, Role role) {
    add(name, {n_out, n_in}, role, {std::string(source)}, true);
}

void TensorTable::exact_matrix(std::string_view name, std::string_view source, int64_t n_out, int64_t n_in, Role role) {
    add(name, {n_out, n_in}, role, {std::string(source)}, false);
}

void TensorTable::vector(std::string_view name, std::string_view source, int64_t n, Role role) {
    add(name, {n}, role, {std::string(source)}, false);
}

void TensorTable::linear(std::string_view name, std::string_view source, int64_t n_out, int64_t n_in, Role role,
                         bool bias) {
    matrix(fmt::format("{}.weight", name), fmt::format("{}.weight", source), n_out, n_in, role);
    if (bias) vector(fmt::format("{}.bias", name), fmt::format("{}.bias", source), n_out, role);
}

void TensorTable::stack(std::string_view name, const std::vector<std::string>& sources, int64_t n_out, int64_t n_in,
                        Role role) {
    add(name, {static_cast<int64_t>(sources.size()), n_out, n_in}, role, sources, true);
}

void TensorTable::without_source(std::string_view name, Shape shape, Role role, bool quantizable) {
    add(name, shape, role, {}, quantizable);
}

void TensorTable::packed(PackedSource source) {
    source.name = there_ + source.name;
    specs_.back().packed.push_back(std::move(source));
}

}  // namespace llm
