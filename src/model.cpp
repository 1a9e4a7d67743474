#include "src/model.h"

#include <algorithm>

#include "ggmlx/core/error.h"
#include "src/weights.h"

namespace llm {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

namespace {

std::string optional_document(const ggmlx::ModelFile& file, std::string_view name) {
    return file.has_document(name) ? file.document(name) : std::string();
}

/// Runs f; errors get the file's name in front.
template <class F>
auto with_path(const ggmlx::ModelFile& file, F&& f) {
    try {
        return f();
    } catch (const ggmlx::Error& e) {
        throw ggmlx::Error(e.kind(), file.path() + ": " + e.what());
    }
}

ModelConfig read_config(const ggmlx::ModelFile& file) {
    require(file.has_document("config.json"), ErrorKind::CorruptFile, "{}: it has no config.json; convert it again",
            file.path());
    return with_path(file, [&] { return ModelConfig::from_json(file.document("config.json")); });
}

std::optional<Tokenizer> read_tokenizer(const ggmlx::ModelFile& file) {
    if (!file.has_document("tokenizer.json")) return std::nullopt;
    return with_path(file, [&] {
        return Tokenizer::from_json(file.document("tokenizer.json"), optional_document(file, "tokenizer_config.json"));
    });
}

}  // namespace

Model::Model(ggmlx::ModelFile file) : file_(std::move(file)), config_(read_config(*file_)) {
    generation_ = with_path(*file_, [&] {
        return GenerationConfig::from_json(optional_document(*file_, "generation_config.json"),
                                           file_->document("config.json"));
    });
    arch_ = with_path(*file_, [&] { return &architecture(config_.architecture); });
    weights_ = describe_weights(*file_, arch_->tensors(config_));
    tokenizer_ = read_tokenizer(*file_);
    if (!tokenizer_) return;
    require(tokenizer_->n_vocab() <= config_.n_vocab, ErrorKind::CorruptFile,
            "{}: the tokenizer has {} ids, but the embedding only {} rows", file_->path(), tokenizer_->n_vocab(),
            config_.n_vocab);
    for (TokenId id = 0; id < config_.n_vocab; ++id)
        if (!tokenizer_->has_token(id)) unused_ids_.push_back(id);
}

Model::Model(ModelConfig config, ggmlx::DType matrix_type) : config_(std::move(config)) {
    arch_ = &architecture(config_.architecture);
    weights_ = describe_weights(arch_->tensors(config_), matrix_type);
}

const ggmlx::ModelFile& Model::file() const {
    require(file_.has_value(), ErrorKind::InvalidArgument, "this model is a shape without a file");
    return *file_;
}

const Tokenizer& Model::tokenizer() const {
    require(tokenizer_.has_value(), ErrorKind::Unsupported,
            "{}: the model has no tokenizer.json, so it reads token ids only; give them with --ids",
            file_ ? file_->path() : "a shape");
    return *tokenizer_;
}

bool Model::is_eos(TokenId id) const {
    const auto& ids = generation_.eos_ids;
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace llm
