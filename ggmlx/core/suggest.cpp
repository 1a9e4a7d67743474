#include "ggmlx/core/suggest.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace ggmlx {
namespace {

/// Drops regex punctuation and turns each run of digits into one '0', so that layers do not matter.
std::string essence(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool is_dot_star = c == '.' && i + 1 < text.size() && (text[i + 1] == '*' || text[i + 1] == '+');
        if (std::isdigit(static_cast<unsigned char>(c))) {
            if (out.empty() || out.back() != '0') out += '0';
        } else if (!is_dot_star && (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-')) {
            out += c;
        }
    }
    return out;
}

size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

}  // namespace

std::vector<std::string> nearest(std::string_view typed, std::span<const std::string> candidates, size_t n) {
    const std::string wanted = essence(typed.substr(0, 256));
    std::set<std::string> seen;
    std::vector<std::pair<size_t, std::string>> ranked;
    for (const auto& candidate : candidates) {
        std::string form = essence(candidate);
        if (!seen.insert(form).second) continue;
        // What was typed may be a part of a name, so letters the name has in addition count little.
        const size_t extra = form.size() > wanted.size() ? form.size() - wanted.size() : 0;
        ranked.emplace_back(4 * edit_distance(wanted, form) - 3 * extra, candidate);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(n, ranked.size()); ++i) names.push_back(ranked[i].second);
    return names;
}

std::string did_you_mean(std::string_view typed, std::span<const std::string> candidates) {
    const auto names = nearest(typed, candidates);
    if (names.empty()) return "";
    std::string text = ": did you mean ";
    for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
    return text + "?";
}

}  // namespace ggmlx
