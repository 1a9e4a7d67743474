#include "convert/gguf/source.h"

#include <fmt/format.h>

#include <set>

#include "convert/documents.h"
#include "convert/gguf/config.h"
#include "convert/gguf/matrix.h"
#include "convert/gguf/tokenizer.h"
#include "convert/leftovers.h"
#include "convert/tensor_map.h"
#include "ggmlx/core/error.h"
#include "src/config.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using llm::TensorSpec;

/// Tensors that follow from config.json: rotary tables, and the factors that became its rope_scaling.
constexpr std::string_view kNeedless[] = {"rope_freqs.weight", "blk.*.attn_rot_embd.weight"};

bool is_needless(std::string_view name) {
    for (const std::string_view pattern : kNeedless)
        if (matches_wildcard(pattern, name)) return true;
    return false;
}

/// Collects lines for one error that shows all of them.
struct Problems {
    std::string missing, misshapen, unreadable;
    int64_t n_missing = 0;

    void throw_if_any(const std::string& path) const {
        require(missing.empty(), ErrorKind::CorruptFile, "{} lacks {} tensors that its metadata ask for:{}", path,
                n_missing, missing);
        require(misshapen.empty(), ErrorKind::CorruptFile, "{}: tensors and metadata disagree about shapes:{}", path,
                misshapen);
        require(unreadable.empty(), ErrorKind::Unsupported,
                "{}: these tensors are of types that cannot be read here; convert the original checkpoint, or fetch a "
                "file of another type:{}",
                path, unreadable);
    }
};

class GgufSource : public Source {
  public:
    explicit GgufSource(GgufCheckpoint checkpoint) : checkpoint_(std::move(checkpoint)) {
        const GgufMetadata& metadata = checkpoint_.metadata();
        interleaved_rope_ = gguf_family(metadata).interleaved_rope;
        add_document("config.json", gguf_config_json(checkpoint_, notes_));
        head_dim_ = llm::ModelConfig::from_json(documents_.front().text).head_dim;
        add_document("generation_config.json", gguf_generation_config_json(metadata));
        std::string tokenizer = gguf_tokenizer_json(metadata, notes_);
        if (tokenizer.empty()) return;
        add_document("tokenizer.json", std::move(tokenizer));
        add_document("tokenizer_config.json", gguf_tokenizer_config_json(metadata));
        add_chat_template(documents_);
    }

    std::vector<std::string> weight_files() const override { return checkpoint_.files(); }
    std::vector<ggmlx::DocumentToWrite> documents() const override { return documents_; }
    std::vector<std::string> match(const llm::Architecture& architecture, const std::vector<TensorSpec>& specs,
                                   std::span<const std::string> skip) override;
    StoredType stored_type(const TensorSpec& spec) const override {
        const GgufTypeInfo& type = *checkpoint_.find(spec.name)->tensor->type;
        return {.name = std::string(type.name),
                .dtype = *type.dtype,
                .exact = type.exact,
                .is_quantized = type.is_quantized()};
    }
    void produce(const SliceJob& job, std::span<std::byte> dst) const override {
        const auto& entry = *checkpoint_.find(job.spec.name);
        GgufMatrix(entry, job.slice, interleaved_head(job.spec.name)).store(job.dtype, dst, job.error, job.n_threads);
        const bool last = job.spec.shape.rank() < 3 || job.slice + 1 == job.spec.shape[0];
        if (last) entry.file->done_with(*entry.tensor);
    }

  private:
    void add_document(std::string name, std::string text) { documents_.push_back({std::move(name), std::move(text)}); }
    int64_t interleaved_head(std::string_view name) const {
        const bool rotated = matches_wildcard("blk.*.attn_q.*", name) || matches_wildcard("blk.*.attn_k.*", name);
        return interleaved_rope_ && rotated ? head_dim_ : 0;
    }

    GgufCheckpoint checkpoint_;
    std::vector<ggmlx::DocumentToWrite> documents_;
    std::vector<std::string> notes_;
    bool interleaved_rope_ = false;
    int64_t head_dim_ = 0;
};

std::vector<std::string> GgufSource::match(const llm::Architecture&, const std::vector<TensorSpec>& specs,
                                           std::span<const std::string> skip) {
    Problems problems;
    std::set<std::string_view> claimed;
    for (const TensorSpec& spec : specs) {
        const auto* entry = checkpoint_.find(spec.name);
        claimed.insert(spec.name);
        if (!entry) {
            problems.missing += "\n  " + spec.name;
            ++problems.n_missing;
        } else if (entry->tensor->shape != spec.shape) {
            problems.misshapen += fmt::format("\n  {} is {}, expected {}", spec.name, entry->tensor->shape.to_string(),
                                              spec.shape.to_string());
        } else if (!entry->tensor->type->dtype) {
            problems.unreadable += fmt::format("\n  {}: {}", spec.name, entry->tensor->type->name);
        }
    }
    problems.throw_if_any(checkpoint_.path());
    Leftovers leftovers(skip);
    for (const auto& [name, entry] : checkpoint_.tensors())
        if (!claimed.contains(name) && !is_needless(name)) leftovers.add(std::string(name));
    leftovers.require_known();
    std::vector<std::string> notes = notes_;
    for (std::string& note : leftovers.notes()) notes.push_back(std::move(note));
    return notes;
}

}  // namespace

std::unique_ptr<Source> open_gguf_source(const std::string& path) {
    return std::make_unique<GgufSource>(GgufCheckpoint::open(path));
}

}  // namespace convert
