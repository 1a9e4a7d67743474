// Filters about sequences: order, length, first and last, cutting.

#include <algorithm>

#include "src/chat/access.h"
#include "src/chat/arguments.h"
#include "src/chat/characters.h"
#include "src/chat/compare.h"
#include "src/chat/filters.h"
#include "src/chat/method_table.h"

namespace llm::jinja {
namespace {

/// What sort, min, max and unique compare: strings without their case, unless it counts.
Value sort_key(Runtime& runtime, const Value& value, bool case_sensitive) {
    if (case_sensitive || !value.is_string()) return value;
    runtime.spend_bytes(16 * value.str().size());
    return runtime.string(lower(value.text()));
}

/// Items in the order of their keys; stable, also in reverse.
std::vector<Value> sorted(Runtime& runtime, std::vector<std::pair<Value, Value>> keyed, bool reverse) {
    std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
        return reverse ? less(runtime, b.first, a.first) : less(runtime, a.first, b.first);
    });
    std::vector<Value> items;
    for (auto& [key, item] : keyed) items.push_back(std::move(item));
    return items;
}

/// The attributes "a,b.c" of an item as a list to compare, also if it is one: lists compare what is not there as equal.
Value multi_key(Runtime& runtime, const Value& item, const Value& attributes, bool case_sensitive) {
    if (!attributes.is_string())
        return runtime.list({sort_key(runtime, attribute_path(runtime, item, attributes), case_sensitive)});
    std::vector<Value> keys;
    std::string_view rest = attributes.str();
    while (true) {
        const size_t comma = std::min(rest.find(','), rest.size());
        const Value path = runtime.string(std::string(rest.substr(0, comma)));
        keys.push_back(sort_key(runtime, attribute_path(runtime, item, path), case_sensitive));
        if (comma == rest.size()) return runtime.list(std::move(keys));
        rest.remove_prefix(comma + 1);
    }
}

Value sort_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"});
    std::vector<std::pair<Value, Value>> keyed;
    for (Value& item : items_of(runtime, input)) {
        Value key = multi_key(runtime, item, bound.value_or(2, None{}), bound.truth_or(1, false));
        keyed.emplace_back(std::move(key), std::move(item));
    }
    return runtime.list(sorted(runtime, std::move(keyed), bound.truth_or(0, false)));
}

Value dictsort_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"});
    require_defined(input);
    const Dict* dict = input.as<Dict>();
    if (!dict) refuse("'{}' object has no attribute 'items'", type_name(input));
    const std::string by = bound.has(1) ? bound.text(1).bytes : "key";
    if (by != "key" && by != "value") refuse("You can only sort by either \"key\" or \"value\"");
    std::vector<std::pair<Value, Value>> keyed;
    for (const auto& [key, value] : dict->entries) {
        const Value pair = runtime.list({key, value}, ListType::Tuple);
        keyed.emplace_back(sort_key(runtime, by == "key" ? key : value, bound.truth_or(0, false)), pair);
    }
    return runtime.list(sorted(runtime, std::move(keyed), bound.truth_or(2, false)));
}

template <bool want_max>
Value extreme_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound(want_max ? "max" : "min", arguments, {"case_sensitive", "attribute"});
    const auto items = items_of(runtime, input);
    if (items.empty()) return undefined("No aggregated item, sequence was empty.");
    const auto key_of = [&](const Value& item) {
        return sort_key(runtime, attribute_path(runtime, item, bound.value_or(1, None{})), bound.truth_or(0, false));
    };
    size_t best = 0;
    Value best_key = key_of(items[0]);
    for (size_t i = 1; i < items.size(); ++i) {
        Value key = key_of(items[i]);
        if (!(want_max ? order(runtime, key, best_key, ">") == 1 : less(runtime, key, best_key))) continue;
        best = i;
        best_key = std::move(key);
    }
    return items[best];
}

Value unique_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("unique", arguments, {"case_sensitive", "attribute"});
    Dict* seen = runtime.dict();
    std::vector<Value> items;
    for (const Value& item : items_of(runtime, input)) {
        const Value key =
            sort_key(runtime, attribute_path(runtime, item, bound.value_or(1, None{})), bound.truth_or(0, false));
        if (seen->find(runtime, key)) continue;
        seen->set(runtime, key, None{});
        items.push_back(item);
    }
    return runtime.iterator(std::move(items));
}

Value first_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("first", arguments, {});
    if (Iterator* iterator = input.as<Iterator>(); iterator && iterator->next < iterator->items.size())
        return iterator->items[iterator->next++];
    const auto items = items_of(
        runtime,
        input.is_string() ? Value(runtime.string(characters(input.text(), 0, input.str().empty() ? 0 : 1))) : input);
    return items.empty() ? undefined("No first item, sequence was empty.") : items.front();
}

Value last_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("last", arguments, {});
    if (input.as<Iterator>()) refuse("'generator' object is not reversible");
    const auto items = items_of(runtime, input);
    return items.empty() ? undefined("No last item, sequence was empty.") : items.back();
}

Value length_filter(Runtime&, const Value& input, Arguments& arguments) {
    const Bound bound("length", arguments, {});
    const auto length = length_of(input);
    if (!length) refuse("object of type '{}' has no len()", type_name(input));
    return static_cast<int64_t>(*length);
}

Value list_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("list", arguments, {});
    return runtime.list(items_of(runtime, input));
}

Value reverse_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("reverse", arguments, {});
    if (input.is_string()) return get_slice(runtime, input, Value(), Value(), int64_t{-1});
    if (!is_iterable(input)) refuse("argument must be iterable");
    auto items = items_of(runtime, input);
    std::reverse(items.begin(), items.end());
    if (input.as<Iterator>()) return runtime.list(std::move(items));
    return runtime.iterator(std::move(items));
}

Value items_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("items", arguments, {});
    if (input.is_undefined()) return runtime.iterator({});
    const Dict* dict = input.as<Dict>();
    if (!dict) refuse("Can only get item pairs from a mapping.");
    std::vector<Value> items;
    for (const auto& [key, value] : dict->entries) items.emplace_back(runtime.list({key, value}, ListType::Tuple));
    return runtime.iterator(std::move(items));
}

Value batch_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("batch", arguments, {"linecount", "fill_with"}, 1);
    const int64_t size = bound.integer_or(0, 1);
    std::vector<Value> batches, batch;
    for (Value& item : items_of(runtime, input)) {
        if (static_cast<int64_t>(batch.size()) == size) batches.emplace_back(runtime.list(std::exchange(batch, {})));
        batch.push_back(std::move(item));
    }
    if (!batch.empty()) {
        const auto full = static_cast<size_t>(std::max<int64_t>(size, 0));
        if (bound.is_set(1) && batch.size() < full) {
            runtime.reserve(full > SIZE_MAX / 64 ? SIZE_MAX : full * sizeof(Value));
            batch.resize(full, bound.value(1));
        }
        batches.emplace_back(runtime.list(std::move(batch)));
    }
    return runtime.iterator(std::move(batches));
}

Value slice_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("slice", arguments, {"slices", "fill_with"}, 1);
    const int64_t n = bound.integer_or(0, 1);
    const auto items = items_of(runtime, input);
    const auto size = static_cast<int64_t>(items.size());
    if (n == 0) refuse("integer division or modulo by zero");
    runtime.spend(static_cast<size_t>(std::max<int64_t>(n, 0)));
    std::vector<Value> slices;
    int64_t offset = 0;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t begin = offset + i * (size / n);
        const bool longer = i < size % n;
        if (longer) ++offset;
        std::vector<Value> part(items.begin() + begin, items.begin() + offset + (i + 1) * (size / n));
        if (bound.is_set(1) && !longer) part.push_back(bound.value(1));
        slices.emplace_back(runtime.list(std::move(part)));
    }
    return runtime.iterator(std::move(slices));
}

Value default_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("default", arguments, {"default_value", "boolean"});
    const bool missing = input.is_undefined() || (bound.truth_or(1, false) && !truthy(input));
    return missing ? bound.value_or(0, runtime.string(std::string())) : input;
}

}  // namespace

Filter find_list_filter(std::string_view name) {
    static constexpr std::pair<std::string_view, Filter> kFilters[] = {
        {"batch", batch_filter},     {"count", length_filter},      {"d", default_filter},
        {"default", default_filter}, {"dictsort", dictsort_filter}, {"first", first_filter},
        {"items", items_filter},     {"last", last_filter},         {"length", length_filter},
        {"list", list_filter},       {"max", extreme_filter<true>}, {"min", extreme_filter<false>},
        {"reverse", reverse_filter}, {"slice", slice_filter},       {"sort", sort_filter},
        {"unique", unique_filter},
    };
    return find_in(kFilters, name);
}

}  // namespace llm::jinja
