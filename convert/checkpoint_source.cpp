#include "convert/checkpoint_source.h"

#include "convert/checkpoint.h"
#include "convert/documents.h"
#include "convert/matrix_source.h"
#include "convert/packed_mxfp4.h"
#include "convert/tensor_map.h"
#include "convert/write_model.h"

namespace convert {
namespace {

using ggmlx::DType;
using llm::PackedSource;
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
        const auto config = llm::ModelConfig::from_json(*find_document(documents_, "config.json"));
        return match_tensors(checkpoint_, architecture, config, specs, skip, block_);
    }
    StoredType stored_type(const TensorSpec& spec) const override {
        const PackedSource* packed = packed_form(checkpoint_, spec);
        if (packed && packed->form == PackedSource::Form::MXFP4)
            return {.name = "mxfp4", .dtype = DType::MXFP4, .exact = true, .is_quantized = true};
        const SourceType type = checkpoint_.find(packed ? packed->name : spec.sources[0])->tensor->type;
        return {.name = lower_case(name(type)), .dtype = own_type(type), .exact = true, .is_quantized = false};
    }
    void produce(const SliceJob& job, std::span<std::byte> dst) const override {
        const SliceShape cut = slice_shape(job.spec.role, job.spec.shape);
        for (int64_t m = 0; m < cut.n_matrices; ++m)
            produce_matrix(job, job.slice * cut.n_matrices + m, cut, nth(dst, m, cut.n_matrices));
    }

  private:
    /// Matrix `index` of all that the tensor consists of.
    void produce_matrix(const SliceJob& job, int64_t index, const SliceShape& cut, std::span<std::byte> dst) const {
        const PackedSource* packed = packed_form(checkpoint_, job.spec);
        const bool last = index + 1 == cut.n_slices * cut.n_matrices;
        if (!packed) {
            const std::string& source_name = job.spec.sources[static_cast<size_t>(index)];
            encode(job, source_name, cut, MatrixSource(checkpoint_, source_name, block_), dst, true);
        } else if (packed->form == PackedSource::Form::Plain) {
            encode(job, packed->name, cut, MatrixSource(checkpoint_, *packed, index, cut.n_out, cut.n_in, block_), dst,
                   last);
        } else {
            const PackedMxfp4 source(checkpoint_, *packed, index, cut.n_out, cut.n_in);
            if (job.dtype != DType::MXFP4) return encode(job, packed->name, cut, source, dst, last);
            source.store(dst, job.n_threads);
            if (job.error) job.error->add(0.0, 0.0, cut.n_out * cut.n_in);
            if (last) source.done();
        }
    }

    template <class Matrix>
    static void encode(const SliceJob& job, const std::string& source_name, const SliceShape& cut, const Matrix& source,
                       std::span<std::byte> dst, bool last) {
        EncodeJob encode{.name = source_name,
                         .dtype = job.dtype,
                         .n_out = cut.n_out,
                         .n_in = cut.n_in,
                         .read_rows = {},
                         .error = job.error};
        encode.read_rows = [&source](int64_t first, int64_t n, float* values) { source.read_rows(first, n, values); };
        encode_matrix(encode, dst, job.n_threads);
        if (last) source.done();
    }

    Checkpoint checkpoint_;
    std::vector<ggmlx::DocumentToWrite> documents_;
    ScaleBlock block_;
};

}  // namespace

std::unique_ptr<Source> open_checkpoint_source(const std::string& path) {
    return std::make_unique<CheckpointSource>(Checkpoint::open(path));
}

}  // namespace convert
