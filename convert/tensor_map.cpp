#include "convert/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "convert/leftovers.h"
#include "ggmlx/core/error.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using llm::TensorSpec;

/// The shape of one source: a stacked tensor has one source per expert.
std::vector<int64_t> source_shape(const TensorSpec& spec) {
    const auto dims = spec.shape.dims();
    return {dims.begin() + (spec.sources.size() > 1 ? 1 : 0), dims.end()};
}

void require_sources(const Checkpoint& checkpoint, const std::vector<TensorSpec>& specs) {
    std::string missing, misshapen;
    int64_t n_missing = 0;
    bool misses_head = false;
    for (const TensorSpec& spec : specs) {
        const auto expected = source_shape(spec);
        for (const std::string& source : spec.sources) {
            const Checkpoint::Entry* entry = checkpoint.find(source);
            if (!entry) {
                missing += fmt::format("\n  {}", source);
                ++n_missing;
                misses_head = misses_head || spec.role == ggmlx::Role::Output;
            } else if (entry->tensor->shape != expected) {
                misshapen += fmt::format("\n  {} is {}, expected [{}]", source, entry->tensor->shape_text(),
                                         fmt::join(expected, ", "));
            }
        }
    }
    ggmlx::require(
        missing.empty(), ErrorKind::CorruptFile, "the checkpoint lacks {} tensors that its config.json asks for{}:{}",
        n_missing,
        misses_head && n_missing == 1 ? " (it says tie_word_embeddings is false, so there must be a head)" : "",
        missing);
    ggmlx::require(misshapen.empty(), ErrorKind::CorruptFile, "tensors and config.json disagree about shapes:{}",
                   misshapen);
}

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

std::vector<std::string> match_tensors(const Checkpoint& checkpoint, const llm::Architecture& architecture,
                                       const std::vector<TensorSpec>& specs, std::span<const std::string> skip,
                                       ScaleBlock block) {
    require_sources(checkpoint, specs);
    std::set<std::string, std::less<>> claimed;
    std::vector<std::string> notes;
    for (const TensorSpec& spec : specs) {
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
    for (const auto& [name, entry] : checkpoint.tensors()) {
        const auto ignored = [&name = name](std::string_view pattern) { return matches_wildcard(pattern, name); };
        const auto& patterns = architecture.ignored_sources;
        if (!claimed.contains(name) && std::none_of(patterns.begin(), patterns.end(), ignored)) leftovers.add(name);
    }
    leftovers.require_known();
    for (std::string& note : leftovers.notes()) notes.push_back(std::move(note));
    return notes;
}

}  // namespace convert
