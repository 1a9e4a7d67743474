#pragma once
// Looking up a function by its name in a constant table.

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace llm::jinja {

template <class F, size_t n>
F find_in(const std::pair<std::string_view, F> (&table)[n], std::string_view name) {
    const auto found =
        std::find_if(std::begin(table), std::end(table), [&](const auto& row) { return row.first == name; });
    return found == std::end(table) ? nullptr : found->second;
}

}  // namespace llm::jinja
