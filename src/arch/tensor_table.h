#pragma once
// Collects the tensors of a family. A pair of prefixes leads every name: "blk.3." here, "model.layers.3." in the
// checkpoint.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/arch/arch.h"

namespace llm {

class TensorTable {
  public:
    void set_prefix(std::string here, std::string there);

    void matrix(std::string_view name, std::string_view source, int64_t n_out, int64_t n_in, ggmlx::Role role);
    /// A matrix that stays f32.
    void exact_matrix(std::string_view name, std::string_view source, int64_t n_out, int64_t n_in, ggmlx::Role role);
    void vector(std::string_view name, std::string_view source, int64_t n, ggmlx::Role role);
    /// A matrix NAME.weight and, if wanted, its NAME.bias.
    void linear(std::string_view name, std::string_view source, int64_t n_out, int64_t n_in, ggmlx::Role role,
                bool bias);
    /// One matrix per source, stacked.
    void stack(std::string_view name, const std::vector<std::string>& sources, int64_t n_out, int64_t n_in,
               ggmlx::Role role);
    /// A tensor without sources of its own: packed() says where it is.
    void without_source(std::string_view name, ggmlx::Shape shape, ggmlx::Role role, bool quantizable);

    /// The last tensor may lie in the checkpoint in this form as well (source.name without the prefix).
    void packed(PackedSource source);
    /// The last tensor may occur in the checkpoint a second time, as `source`.
    void tied(std::string source) { specs_.back().tied_source = std::move(source); }

    std::vector<TensorSpec> take() { return std::move(specs_); }

  private:
    void add(std::string_view name, ggmlx::Shape shape, ggmlx::Role role, std::vector<std::string> sources,
             bool quantizable);

    std::string here_, there_;
    std::vector<TensorSpec> specs_;
};

}  // namespace llm
