#include "convert/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "convert/leftovers.h"
#include "convert/packed_mxfp4.h"
#include "ggmlx/core/error.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using llm::TensorSpec;

using llm::PackedSource;

/// The shape of one source: a stacked tensor has one source per expert.
std::vector<int64_t> source_shape(const TensorSpec& spec) {
    const auto dims = spec.shape.dims();
    return {dims.begin() + (spec.shape.rank() > 2 ? 1 : 0), dims.end()};
}

/// What is wrong with a checkpoint's tensors, all of it.
struct SourceProblems {
    std::string missing, misshapen;
    int64_t n_missing = 0;
    bool misses_head = false;

    void check(const Checkpoint& checkpoint, const TensorSpec& spec, const std::string& source) {
        const Checkpoint::Entry* entry = checkpoint.find(source);
        const auto expected = source_shape(spec);
        if (!entry)
            add_missing(spec, source);
        else if (entry->tensor->shape != expected)
            misshapen += fmt::format("\n  {} is {}, expected [{}]", source, entry->tensor->shape_text(),
                                     fmt::join(expected, ", "));
    }
    void add_missing(const TensorSpec& spec, std::string_view source) {
        missing += fmt::format("\n  {}", source);
        ++n_missing;
        misses_head = misses_head || spec.role == ggmlx::Role::Output;
    }
    void throw_if_any() const {
        ggmlx::require(
            missing.empty(), ErrorKind::CorruptFile,
            "the checkpoint lacks {} tensors that its config.json asks for{}:{}", n_missing,
            misses_head && n_missing == 1 ? " (it says tie_word_embeddings is false, so there must be a head)" : "",
            missing);
        ggmlx::require(misshapen.empty(), ErrorKind::CorruptFile, "tensors and config.json disagree about shapes:{}",
                       misshapen);
    }
};

/// Packed forms are checked when they are opened.
void require_sources(const Checkpoint& checkpoint, const std::vector<TensorSpec>& specs) {
    SourceProblems problems;
    for (const TensorSpec& spec : specs) {
        if (packed_form(checkpoint, spec)) continue;
        for (const std::string& source : spec.sources) problems.check(checkpoint, spec, source);
        if (spec.sources.empty()) problems.add_missing(spec, spec.packed.at(0).name);
    }
    problems.throw_if_any();
}

/// Claims the tensors of a packed form, after a look at their types, shapes and scales.
void claim_packed(const Checkpoint& checkpoint, const TensorSpec& spec, const PackedSource& packed, ScaleBlock block,
                  std::set<std::string, std::less<>>& claimed) {
    const int64_t n_in = spec.shape[-1], n_out = spec.shape.rank() > 1 ? spec.shape[-2] : 1;
    if (packed.form == PackedSource::Form::MXFP4) {
        (void)PackedMxfp4(checkpoint, packed, 0, n_out, n_in);
        claimed.insert({mxfp4_blocks_name(packed.name), mxfp4_scales_name(packed.name)});
    } else {
        (void)MatrixSource(checkpoint, packed, 0, n_out, n_in, block);
        claimed.insert(packed.name);
        if (checkpoint.find(scale_name(packed.name))) claimed.insert(scale_name(packed.name));
    }
}

/// Tensors of layers behind the last, which predict further tokens.
class FurtherLayers {
  public:
    explicit FurtherLayers(const llm::ModelConfig& config) {
        for (int64_t i = 0; i < config.n_mtp_layers; ++i)
            prefixes_.push_back(fmt::format("model.layers.{}.", config.n_layer + i));
    }
    bool leave_out(std::string_view name) {
        const bool mine = std::any_of(prefixes_.begin(), prefixes_.end(),
                                      [&](const std::string& prefix) { return name.starts_with(prefix); });
        n_left_out_ += mine;
        return mine;
    }
    void add_note(std::vector<std::string>& notes) const {
        if (n_left_out_ > 0)
            notes.push_back(fmt::format("left out {} tensors of multi-token prediction ({}*), which is not used",
                                        n_left_out_, fmt::join(prefixes_, "*, ")));
    }

  private:
    std::vector<std::string> prefixes_;
    int64_t n_left_out_ = 0;
};

/// What a second copy of a tied tensor means. transformers ties by config.json, so the copy has no effect there either.
std::string tied_note(const Checkpoint& checkpoint, const TensorSpec& spec) {
    const Checkpoint::Entry& used = *checkpoint.find(spec.sources[0]);
    const Checkpoint::Entry& copy = *checkpoint.find(spec.tied_source);
    const auto a = used.file->data(*used.tensor), b = copy.file->data(*copy.tensor);
    const bool same = used.tensor->type == copy.tensor->type && used.tensor->shape == copy.tensor->shape &&
                      std::equal(a.begin(), a.end(), b.begin(), b.end());
    used.file->done_with(*used.tensor);
    copy.file->done_with(*copy.tensor);
    if (same) return fmt::format("{} equals {} and is stored once", spec.tied_source, spec.sources[0]);
    return fmt::format(
        "warning: {} differs from {}, but config.json ties them (tie_word_embeddings); {} is used for both, as "
        "transformers does",
        spec.tied_source, spec.sources[0], spec.sources[0]);
}

}  // namespace

bool matches_wildcard(std::string_view pattern, std::string_view name) {
    const size_t star = pattern.find('*');
    if (star == pattern.npos) return pattern == name;
    if (!name.starts_with(pattern.substr(0, star))) return false;
    const std::string_view rest = pattern.substr(star + 1);
    for (name.remove_prefix(star);; name.remove_prefix(1)) {
        if (matches_wildcard(rest, name)) return true;
        if (name.empty()) return false;
    }
}

const PackedSource* packed_form(const Checkpoint& checkpoint, const TensorSpec& spec) {
    if (!spec.sources.empty() && checkpoint.find(spec.sources[0])) return nullptr;
    for (const PackedSource& packed : spec.packed) {
        const bool plain = packed.form == PackedSource::Form::Plain;
        if (checkpoint.find(plain ? packed.name : mxfp4_blocks_name(packed.name))) return &packed;
    }
    return nullptr;
}

std::vector<std::string> match_tensors(const Checkpoint& checkpoint, const llm::Architecture& architecture,
                                       const llm::ModelConfig& config, const std::vector<TensorSpec>& specs,
                                       std::span<const std::string> skip, ScaleBlock block) {
    require_sources(checkpoint, specs);
    std::set<std::string, std::less<>> claimed;
    std::vector<std::string> notes;
    for (const TensorSpec& spec : specs) {
        if (const PackedSource* packed = packed_form(checkpoint, spec)) {
            claim_packed(checkpoint, spec, *packed, block, claimed);
            continue;
        }
        for (const std::string& source : spec.sources) {
            (void)MatrixSource(checkpoint, source, block);  // type and scales are as they must be
            claimed.insert(source);
            if (checkpoint.find(scale_name(source))) claimed.insert(scale_name(source));
        }
        if (!spec.tied_source.empty() && checkpoint.find(spec.tied_source)) {
            claimed.insert({spec.tied_source, scale_name(spec.tied_source)});
            notes.push_back(tied_note(checkpoint, spec));
        }
    }
    Leftovers leftovers(skip);
    FurtherLayers further(config);
    for (const auto& [name, entry] : checkpoint.tensors()) {
        const auto ignored = [&name = name](std::string_view pattern) { return matches_wildcard(pattern, name); };
        const auto& patterns = architecture.ignored_sources;
        const bool needless = std::any_of(patterns.begin(), patterns.end(), ignored) || further.leave_out(name);
        if (!claimed.contains(name) && !needless) leftovers.add(name);
    }
    leftovers.require_known();
    further.add_note(notes);
    for (std::string& note : leftovers.notes()) notes.push_back(std::move(note));
    return notes;
}

}  // namespace convert
