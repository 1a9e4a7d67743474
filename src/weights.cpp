#include "src/weights.h"

#include <fmt/core.h>

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ggmlx/core/error.h"
#include "ggmlx/quant/quantize.h"

namespace llm {

using ggmlx::DType;
using ggmlx::ErrorKind;
using ggmlx::require;
using ggmlx::StoredTensor;

namespace {

/// "a, b, c and 7 more": long lists of names stay readable.
std::string join(const std::vector<std::string>& names) {
    constexpr size_t kShown = 20;
    std::string text;
    for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i ? ", " : "") + names[i];
    if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
    return text;
}

bool type_fits(const TensorSpec& spec, DType dtype) {
    if (!spec.quantizable) return dtype == DType::F32;
    return dtype != DType::I32 && dtype != DType::F8_E4M3;
}

}  // namespace

ggmlx::TensorSet describe_weights(const ggmlx::ModelFile& file, std::span<const TensorSpec> specs) {
    std::unordered_map<std::string_view, const TensorSpec*> wanted;
    for (const TensorSpec& s : specs) wanted.emplace(s.name, &s);

    ggmlx::TensorSet tensors;
    std::vector<std::string> unknown, missing, wrong;
    for (const StoredTensor& t : file.tensors()) {
        const auto it = wanted.find(t.name);
        if (it == wanted.end()) {
            unknown.push_back(t.name);
            continue;
        }
        const TensorSpec& spec = *it->second;
        if (t.shape != spec.shape)
            wrong.push_back(fmt::format("{} is {}, not {}", t.name, t.shape.to_string(), spec.shape.to_string()));
        else if (!type_fits(spec, t.dtype))
            wrong.push_back(fmt::format("{} cannot be {}", t.name, ggmlx::name(t.dtype)));
        else
            tensors.add(t.name, t.dtype, t.shape, spec.role);
        wanted.erase(it);
    }
    for (const TensorSpec& s : specs)
        if (wanted.count(s.name)) missing.push_back(s.name);

    std::string problems;
    if (!missing.empty()) problems += fmt::format("; {} tensors are missing: {}", missing.size(), join(missing));
    if (!unknown.empty())
        problems += fmt::format("; {} tensors do not belong to the architecture: {}", unknown.size(), join(unknown));
    if (!wrong.empty()) problems += fmt::format("; {} tensors do not fit: {}", wrong.size(), join(wrong));
    require(problems.empty(), ErrorKind::CorruptFile,
            "{}: its tensors do not match its config.json{}; convert it again", file.path(), problems);
    return tensors;
}

ggmlx::TensorSet describe_weights(std::span<const TensorSpec> specs, DType matrix_type) {
    ggmlx::TensorSet tensors;
    for (const TensorSpec& s : specs)
        tensors.add(s.name, s.quantizable ? ggmlx::storable_type(matrix_type, s.shape[-1]) : DType::F32, s.shape,
                    s.role);
    return tensors;
}

}  // namespace llm
