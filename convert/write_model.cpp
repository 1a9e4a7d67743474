#include "convert/write_model.h"

#include <filesystem>

#include "ggmlx/core/buffer.h"
#include "ggmlx/core/error.h"

namespace convert {
namespace {

namespace fs = std::filesystem;

std::vector<ggmlx::TensorToWrite> targets(const std::vector<TensorPlan>& plans) {
    std::vector<ggmlx::TensorToWrite> result;
    for (const TensorPlan& plan : plans) result.push_back(plan.target);
    return result;
}

}  // namespace

SliceShape slice_shape(ggmlx::Role role, const ggmlx::Shape& shape) {
    SliceShape cut;
    const int rank = shape.rank();
    cut.n_in = shape[-1];
    if (rank >= 2) cut.n_out = shape[-2];
    for (int i = 0; i + 2 < rank; ++i) cut.n_matrices *= shape[i];
    if (role == ggmlx::Role::Expert) std::swap(cut.n_slices, cut.n_matrices);
    return cut;
}

void require_separate_output(const std::string& output, std::span<const std::string> inputs) {
    std::error_code ignored;
    ggmlx::require(!output.empty(), ggmlx::ErrorKind::InvalidArgument, "the output needs a name, such as model.ggmx");
    ggmlx::require(!fs::is_directory(output, ignored), ggmlx::ErrorKind::InvalidArgument,
                   "the output {} is a folder; name a file in it", output);
    for (const std::string& input : inputs)
        ggmlx::require(!fs::equivalent(output, input, ignored), ggmlx::ErrorKind::InvalidArgument,
                       "the output {} is the input {}; choose another name", output, input);
}

void fill_sizes(const std::vector<TensorPlan>& plans, Report& report) {
    for (size_t i = 0; i < plans.size(); ++i) {
        const auto& target = plans[i].target;
        report.summary.add(target.dtype, target.shape);
        report.tensors[i].bits_per_weight = 8.0 * static_cast<double>(storage_bytes(target.dtype, target.shape)) /
                                            static_cast<double>(target.shape.n_elements());
    }
}

void write_model(const WriteOptions& options, std::vector<ggmlx::DocumentToWrite> documents,
                 const std::vector<TensorPlan>& plans, Report& report, const ProgressSink& progress) {
    report.file_bytes = ggmlx::planned_file_size(documents, targets(plans));
    if (options.dry_run) return;
    const uint64_t total = report.summary.total().size_bytes;
    ggmlx::ModelWriter writer(options.output, std::move(documents), targets(plans), options.compress);
    uint64_t done = 0;
    for (size_t t = 0; t < plans.size(); ++t) {
        const auto& target = plans[t].target;
        ErrorSum error;
        const SliceShape cut = slice_shape(target.role, target.shape);
        ggmlx::Buffer slice(static_cast<size_t>(ggmlx::storage_bytes(target.dtype, target.shape) / cut.n_slices));
        for (int64_t i = 0; i < cut.n_slices; ++i) {
            plans[t].produce(i, slice.bytes(), options.measure_errors ? &error : nullptr);
            writer.write_slice(t, i, slice.bytes());
            if (progress) progress(done += slice.size(), total);
        }
        report.tensors[t].rmse = error.rmse();
        report.tensors[t].max_error = error.max_error();
    }
    writer.finish();
    report.file_bytes = std::filesystem::file_size(options.output);
}

}  // namespace convert
