#include "ggmlx/core/similar.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ggmlx {
namespace {

/// Levenshtein's distance: insertions, deletions and replacements that turn a into b, or into any part of b.
size_t edit_distance(std::string_view a, std::string_view b, bool anywhere) {
    std::vector<size_t> row(b.size() + 1);
    if (!anywhere) std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < a.size(); ++i) {
        size_t diagonal = std::exchange(row[0], i + 1);
        for (size_t j = 0; j < b.size(); ++j) {
            const size_t replaced = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
        }
    }
    return anywhere ? *std::min_element(row.begin(), row.end()) : row.back();
}

}  // namespace

std::vector<std::string> similar_names(std::string_view wanted, std::span<const std::string> names, size_t n,
                                       bool anywhere) {
    std::vector<std::pair<size_t, const std::string*>> near;
    for (const std::string& name : names) {
        const size_t distance = edit_distance(wanted, name, anywhere);
        if (distance <= wanted.size() / 2) near.emplace_back(distance, &name);
    }
    std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> result;
    for (size_t i = 0; i < std::min(n, near.size()); ++i) result.push_back(*near[i].second);
    return result;
}

std::string did_you_mean(std::string_view wanted, std::span<const std::string> names, size_t n, bool anywhere) {
    const auto near = similar_names(wanted, names, n, anywhere);
    std::string text;
    for (size_t i = 0; i < near.size(); ++i)
        text += (i == 0 ? "; did you mean " : i + 1 == near.size() ? " or " : ", ") + near[i];
    return text.empty() ? text : text + "?";
}

}  // namespace ggmlx
