#include "convert/checkpoint_source.h"

#include "convert/checkpoint.h"
#include "convert/documents.h"
#include "convert/matrix_source.h"
#include "convert/tensor_map.h"

namespace convert {
namespace {

using ggmlx::DType;
using llm::TensorSpec;

/// The type that stores a source's values without loss, or nearly so: FP8 times its scale fits bf16's range, and keeps
/// the four significant bits it has unless the scale has more.
DType own_type(SourceType type) {
    switch (type) {
        case SourceType::F32:
            return DType::F32;
        case SourceType::F16:
            return DType::F16;
        default:
            return DType::BF16;
    }
}

std::string lower_case(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return result;
}

class CheckpointSource : public Source {
  public:
    explicit CheckpointSource(Checkpoint checkpoint)
        : checkpoint_(std::move(checkpoint)), documents_(collect_documents(checkpoint_)) {}

    std::vector<std::string> weight_files() const override { return checkpoint_.weight_files(); }
    std::vector<ggmlx::DocumentToWrite> documents() const override { return documents_; }
    std::vector<std::string> match(const llm::Architecture& architecture, const std::vector<TensorSpec>& specs,
                                   std::span<const std::string> skip) override {
        block_ = scale_block_of(*find_document(documents_, "config.json"));
        return match_tensors(checkpoint_, architecture, specs, skip, block_);
    }
    StoredType stored_type(const TensorSpec& spec) const override {
        const SourceType type = checkpoint_.find(spec.sources[0])->tensor->type;
        return {.name = lower_case(name(type)), .dtype = own_type(type), .exact = true, .is_quantized = false};
    }
    void produce(const SliceJob& job, std::span<std::byte> dst) const override {
        const std::string& source_name = job.spec.sources[static_cast<size_t>(job.slice)];
        const MatrixSource source(checkpoint_, source_name, block_);
        EncodeJob encode{.name = source_name,
                         .dtype = job.dtype,
                         .n_out = source.n_out(),
                         .n_in = source.n_in(),
                         .read_rows = {},
                         .error = job.error};
        encode.read_rows = [&source](int64_t first, int64_t n, float* values) { source.read_rows(first, n, values); };
        encode_matrix(encode, dst, job.n_threads);
        source.done();
    }

  private:
    Checkpoint checkpoint_;
    std::vector<ggmlx::DocumentToWrite> documents_;
    ScaleBlock block_;
};

}  // namespace

std::unique_ptr<Source> open_checkpoint_source(const std::string& path) {
    return std::make_unique<CheckpointSource>(Checkpoint::open(path));
}

}  // namespace convert
