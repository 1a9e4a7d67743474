#pragma once
// Model: what a .ggmx file holds, understood: configuration, architecture, tokenizer and the description of its
// weights. The weights' bytes stay in the mapped file; engines put them on devices.

#include <optional>
#include <string>
#include <vector>

#include "ggmlx/core/tensor.h"
#include "ggmlx/file/reader.h"
#include "src/arch/arch.h"
#include "src/config.h"
#include "src/tokenizer/tokenizer.h"

namespace llm {

/// Immutable, so threads and engines share it without a lock. Must outlive its engines.
class Model {
  public:
    /// Throws io, corrupt_file or unsupported; messages name the file and what in it is wrong.
    static Model open(const std::string& path) { return Model(ggmlx::ModelFile::open(path)); }
    explicit Model(ggmlx::ModelFile file);
    /// A model without weights of its own: what config.json describes, matrices in `matrix_type` (or its fallback where
    /// rows do not suit). Engines fill it with random values. Throws as ModelConfig::from_json.
    Model(ModelConfig config, ggmlx::DType matrix_type);

    bool has_file() const { return file_.has_value(); }
    /// Throws invalid_argument for a model without one.
    const ggmlx::ModelFile& file() const;
    const ModelConfig& config() const { return config_; }
    const GenerationConfig& generation() const { return generation_; }
    const Architecture& arch() const { return *arch_; }
    /// Weights only; in file order.
    const ggmlx::TensorSet& weights() const { return weights_; }

    /// A file may lack a tokenizer; then only token ids can be given to the model.
    bool has_tokenizer() const { return tokenizer_.has_value(); }
    /// Throws unsupported if there is none.
    const Tokenizer& tokenizer() const;
    /// Rows of the embedding that are no token: a sampler must never choose them. Empty without a tokenizer.
    const std::vector<TokenId>& unused_ids() const { return unused_ids_; }
    bool is_eos(TokenId id) const;

  private:
    std::optional<ggmlx::ModelFile> file_;
    ModelConfig config_;
    GenerationConfig generation_;
    const Architecture* arch_ = nullptr;
    ggmlx::TensorSet weights_;
    std::optional<Tokenizer> tokenizer_;
    std::vector<TokenId> unused_ids_;
};

}  // namespace llm
