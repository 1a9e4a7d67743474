#include "convert/convert.h"

#include <map>
#include <nlohmann/json.hpp>

#include "convert/documents.h"
#include "convert/requantize.h"
#include "convert/source.h"
#include "convert/write_model.h"
#include "ggmlx/core/error.h"
#include "src/arch/arch.h"
#include "src/config.h"

namespace convert {
namespace {

using ggmlx::DType;
using llm::TensorSpec;

std::string main_source_type(const std::vector<StoredType>& stored, const std::vector<TensorSpec>& specs) {
    std::map<std::string, int64_t> n_values;
    for (size_t i = 0; i < specs.size(); ++i) n_values[stored[i].name] += specs[i].shape.n_elements();
    auto most = n_values.begin();
    for (auto it = n_values.begin(); it != n_values.end(); ++it)
        if (it->second > most->second) most = it;
    return most->first;
}

/// True if values that were rounded to blocks once are rounded again.
bool loses_again(const StoredType& stored, DType dtype) {
    return stored.is_quantized && dtype != DType::F32 && !(stored.exact && dtype == stored.dtype);
}

TensorPlan plan_tensor(const Source& source, const TensorSpec& spec, DType dtype, int n_threads) {
    auto produce = [&source, &spec, dtype, n_threads](int64_t slice, std::span<std::byte> dst, ErrorSum* error) {
        source.produce({.spec = spec, .slice = slice, .dtype = dtype, .error = error, .n_threads = n_threads}, dst);
    };
    return {{spec.name, dtype, spec.role, spec.shape}, produce};
}

}  // namespace

Report convert(const ConvertOptions& options, const ProgressSink& progress) {
    const auto source = open_source(options.input);
    if (!options.dry_run) require_separate_output(options.output, source->weight_files());
    auto documents = source->documents();
    const auto config = llm::ModelConfig::from_json(*find_document(documents, "config.json"));
    const llm::Architecture& architecture = llm::architecture(config.architecture);
    const std::vector<TensorSpec> specs = architecture.tensors(config);

    Report report;
    report.notes = source->match(architecture, specs, options.skip);
    for (std::string& note : check_tokenizer(documents, config.n_vocab)) report.notes.push_back(std::move(note));
    std::vector<StoredType> stored;
    for (const TensorSpec& spec : specs) stored.push_back(source->stored_type(spec));
    const auto choices = choose_types(options.recipe, specs, [&](const TensorSpec& spec) {
        return stored[static_cast<size_t>(&spec - specs.data())].dtype;
    });
    report.source_dtype = main_source_type(stored, specs);

    std::vector<TensorPlan> plans;
    for (size_t i = 0; i < specs.size(); ++i) {
        plans.push_back(plan_tensor(*source, specs[i], choices[i].dtype, options.n_threads));
        report.tensors.push_back({.name = specs[i].name,
                                  .from = stored[i].name,
                                  .wanted = choices[i].wanted,
                                  .dtype = choices[i].dtype,
                                  .requantized = loses_again(stored[i], choices[i].dtype)});
    }
    if (!options.allow_requantize) require_no_requantizing(report);
    fill_sizes(plans, report);
    documents.push_back(
        {"quantization.json", describe_recipe(options.recipe, options.tool_version, report).dump(1) + "\n"});
    write_model({options.output, options.compress, options.measure_errors, options.dry_run}, std::move(documents),
                plans, report, progress);
    return report;
}

}  // namespace convert
