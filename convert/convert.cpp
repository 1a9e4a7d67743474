#include "convert/convert.h"

#include <map>
#include <nlohmann/json.hpp>

#include "convert/documents.h"
#include "convert/matrix_source.h"
#include "convert/tensor_map.h"
#include "convert/write_model.h"
#include "ggmlx/core/error.h"
#include "src/arch/arch.h"
#include "src/config.h"

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

SourceType source_type(const Checkpoint& checkpoint, const TensorSpec& spec) {
    return checkpoint.find(spec.sources[0])->tensor->type;
}

std::string main_source_type(const Checkpoint& checkpoint, const std::vector<TensorSpec>& specs) {
    std::map<SourceType, int64_t> n_values;
    for (const TensorSpec& spec : specs) n_values[source_type(checkpoint, spec)] += spec.shape.n_elements();
    auto most = n_values.begin();
    for (auto it = n_values.begin(); it != n_values.end(); ++it)
        if (it->second > most->second) most = it;
    return lower_case(name(most->first));
}

TensorPlan plan_tensor(const Checkpoint& checkpoint, const TensorSpec& spec, DType dtype, ScaleBlock block,
                       int n_threads) {
    auto produce = [&checkpoint, &spec, dtype, block, n_threads](int64_t slice, std::span<std::byte> dst,
                                                                 ErrorSum* error) {
        const std::string& source_name = spec.sources[static_cast<size_t>(slice)];
        const MatrixSource source(checkpoint, source_name, block);
        EncodeJob job{.name = source_name,
                      .dtype = dtype,
                      .n_out = source.n_out(),
                      .n_in = source.n_in(),
                      .read_rows = {},
                      .error = error};
        job.read_rows = [&source](int64_t first, int64_t n, float* values) { source.read_rows(first, n, values); };
        encode_matrix(job, dst, n_threads);
        source.done();
    };
    return {{spec.name, dtype, spec.role, spec.shape}, produce};
}

}  // namespace

Report convert(const ConvertOptions& options, const ProgressSink& progress) {
    const Checkpoint checkpoint = Checkpoint::open(options.input);
    if (!options.dry_run) require_separate_output(options.output, checkpoint.weight_files());
    auto documents = collect_documents(checkpoint);
    const std::string& config_json = *find_document(documents, "config.json");
    const auto config = llm::ModelConfig::from_json(config_json);
    const llm::Architecture& architecture = llm::architecture(config.architecture);
    const std::vector<TensorSpec> specs = architecture.tensors(config);
    const ScaleBlock block = scale_block_of(config_json);

    Report report;
    report.notes = match_tensors(checkpoint, architecture, specs, options.skip, block);
    for (std::string& note : check_tokenizer(documents, config.n_vocab)) report.notes.push_back(std::move(note));
    const auto choices = choose_types(options.recipe, specs,
                                      [&](const TensorSpec& spec) { return own_type(source_type(checkpoint, spec)); });
    report.source_dtype = main_source_type(checkpoint, specs);

    std::vector<TensorPlan> plans;
    for (size_t i = 0; i < specs.size(); ++i) {
        plans.push_back(plan_tensor(checkpoint, specs[i], choices[i].dtype, block, options.n_threads));
        report.tensors.push_back({.name = specs[i].name,
                                  .from = own_type(source_type(checkpoint, specs[i])),
                                  .wanted = choices[i].wanted,
                                  .dtype = choices[i].dtype});
    }
    fill_sizes(plans, report);
    documents.push_back(
        {"quantization.json", describe_recipe(options.recipe, options.tool_version, report).dump(1) + "\n"});
    write_model({options.output, options.compress, options.measure_errors, options.dry_run}, std::move(documents),
                plans, report, progress);
    return report;
}

}  // namespace convert
