#include "convert/requantize.h"

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "convert/documents.h"
#include "convert/write_model.h"
#include "ggmlx/core/buffer.h"
#include "ggmlx/core/error.h"
#include "ggmlx/file/reader.h"
#include "ggmlx/quant/quantize.h"
#include "src/arch/arch.h"
#include "src/config.h"

namespace convert {
namespace {

using ggmlx::DType;
using ggmlx::ErrorKind;
using ggmlx::ModelFile;
using ggmlx::StoredTensor;
using llm::TensorSpec;

/// The slices of one stored tensor, checked against its checksum when first asked for: views into the mapped file, or
/// into memory if the tensor is compressed.
class StoredSlices {
  public:
    StoredSlices(const ModelFile& file, const StoredTensor& tensor) : file_(file), tensor_(tensor) {}

    std::span<const std::byte> slice(int64_t i) {
        if (raw_.empty()) load();
        const auto n = slice_shape(tensor_.role, tensor_.shape).n_slices;
        const auto bytes = static_cast<size_t>(ggmlx::storage_bytes(tensor_.dtype, tensor_.shape) / n);
        return raw_.subspan(static_cast<size_t>(i) * tensor_.expert_stride, bytes);
    }

  private:
    void load() {
        if (tensor_.compressed) {
            expanded_ = ggmlx::Buffer(tensor_.raw_bytes);
            file_.read(tensor_, expanded_.bytes());
            raw_ = expanded_.bytes();
            return;
        }
        ggmlx::require(file_.compute_checksum(tensor_) == tensor_.checksum, ErrorKind::CorruptFile,
                       "{}: tensor {} is damaged (its checksum differs)", file_.path(), tensor_.name);
        raw_ = file_.stored_bytes(tensor_);
    }

    const ModelFile& file_;
    const StoredTensor& tensor_;
    ggmlx::Buffer expanded_;
    std::span<const std::byte> raw_;
};

/// The family's specs in the order of the file; every stored tensor must be one of them and have its shape.
std::vector<TensorSpec> specs_of(const ModelFile& file) {
    ggmlx::require(file.has_document("config.json"), ErrorKind::CorruptFile, "{} has no config.json", file.path());
    const auto config = llm::ModelConfig::from_json(file.document("config.json"));
    std::map<std::string, TensorSpec> by_name;
    for (TensorSpec& spec : llm::architecture(config.architecture).tensors(config)) by_name[spec.name] = spec;
    std::vector<TensorSpec> specs;
    for (const StoredTensor& tensor : file.tensors()) {
        auto found = by_name.find(tensor.name);
        ggmlx::require(found != by_name.end() && found->second.shape == tensor.shape, ErrorKind::CorruptFile,
                       "{}: {} tensor {} of shape {} does not belong to its config.json", file.path(),
                       config.architecture, tensor.name, tensor.shape.to_string());
        specs.push_back(found->second);
    }
    ggmlx::require(specs.size() == by_name.size(), ErrorKind::CorruptFile, "{}: {} of {} tensors are missing",
                   file.path(), by_name.size() - specs.size(), by_name.size());
    return specs;
}

bool loses_again(DType from, DType to) { return ggmlx::is_block(from) && to != from && to != DType::F32; }

/// Data is reused between the slices of a tensor and dropped after the last.
TensorPlan plan_tensor(const ModelFile& file, const StoredTensor& tensor, DType dtype, int n_threads) {
    auto slices = std::make_shared<std::unique_ptr<StoredSlices>>();
    const SliceShape cut = slice_shape(tensor.role, tensor.shape);
    auto produce = [&file, &tensor, dtype, n_threads, slices, cut](int64_t i, std::span<std::byte> dst,
                                                                   ErrorSum* error) {
        if (!*slices) *slices = std::make_unique<StoredSlices>(file, tensor);
        const auto stored = (*slices)->slice(i);
        if (dtype == tensor.dtype) {
            std::memcpy(dst.data(), stored.data(), dst.size());
        } else {
            for (int64_t m = 0; m < cut.n_matrices; ++m) {
                const auto from = nth(stored, m, cut.n_matrices);
                EncodeJob job{.name = tensor.name,
                              .dtype = dtype,
                              .n_out = cut.n_out,
                              .n_in = cut.n_in,
                              .read_rows = {},
                              .error = error};
                job.read_rows = [&](int64_t first, int64_t n, float* values) {
                    ggmlx::dequantize_rows(tensor.dtype, from, cut.n_out, cut.n_in, first, n, values);
                };
                encode_matrix(job, nth(dst, m, cut.n_matrices), n_threads);
            }
        }
        if (i + 1 == cut.n_slices) slices->reset();
    };
    return {{tensor.name, dtype, tensor.role, tensor.shape}, produce};
}

std::vector<ggmlx::DocumentToWrite> copy_documents(const ModelFile& file) {
    std::vector<ggmlx::DocumentToWrite> documents;
    for (const std::string& name : file.document_names())
        if (name != "quantization.json") documents.push_back({name, file.document(name)});
    return documents;
}

/// quantization.json of the result holds the input's as "previous".
std::string describe(const ModelFile& file, const RequantizeOptions& options, const Report& report) {
    auto text = describe_recipe(options.recipe, options.tool_version, report);
    if (file.has_document("quantization.json"))
        text["previous"] = nlohmann::ordered_json::parse(file.document("quantization.json"), nullptr, false);
    return text.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

void require_no_requantizing(const Report& report) {
    std::string list;
    for (const TensorReport& t : report.tensors)
        if (t.requantized) list += fmt::format("\n  {}: {} -> {}", t.name, t.from, ggmlx::name(t.dtype));
    ggmlx::require(list.empty(), ErrorKind::InvalidArgument,
                   "these tensors are quantized already and would lose twice; start from the original checkpoint, or "
                   "say --allow-requantize:{}",
                   list);
}

Report requantize(const RequantizeOptions& options, const ProgressSink& progress) {
    const ModelFile file = ModelFile::open(options.input);
    if (!options.dry_run) require_separate_output(options.output, std::vector{options.input});
    const std::vector<TensorSpec> specs = specs_of(file);
    auto own_type = [&](const TensorSpec& spec) { return file.find(spec.name)->dtype; };
    const auto choices = choose_types(options.recipe, specs, own_type);

    Report report;
    std::vector<TensorPlan> plans;
    TypeSummary source_summary;
    for (size_t i = 0; i < specs.size(); ++i) {
        const StoredTensor& tensor = file.tensors()[i];
        const DType dtype = choices[i].dtype;
        source_summary.add(tensor.dtype, tensor.shape);
        plans.push_back(plan_tensor(file, tensor, dtype, options.n_threads));
        report.tensors.push_back({.name = tensor.name,
                                  .from = std::string(ggmlx::name(tensor.dtype)),
                                  .wanted = choices[i].wanted,
                                  .dtype = dtype,
                                  .requantized = loses_again(tensor.dtype, dtype)});
    }
    report.source_dtype = ggmlx::name(source_summary.rows().front().dtype);
    if (!options.allow_requantize) require_no_requantizing(report);

    auto documents = copy_documents(file);
    fill_sizes(plans, report);
    documents.push_back({"quantization.json", describe(file, options, report)});
    write_model({options.output, options.compress, options.measure_errors, options.dry_run}, std::move(documents),
                plans, report, progress);
    return report;
}

}  // namespace convert
