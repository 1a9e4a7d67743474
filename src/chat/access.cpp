#include "src/chat/access.h"

#include <algorithm>
#include <cstdlib>

#include "src/chat/compare.h"
#include "src/chat/methods.h"
#include "src/chat/python_text.h"
#include "src/tokenizer/utf8.h"

namespace llm::jinja {
namespace {

/// A method without its call, as a value.
Value bound_method(Runtime& runtime, const Value& object, std::string_view name, Method method) {
    return runtime.make<Function>(std::string(name), [object, method](Runtime& rt, Arguments& arguments) {
        return method(rt, object, arguments);
    });
}

/// An attribute in Python's sense: not an item.
std::optional<Value> own_attribute(Runtime& runtime, const Value& object, std::string_view name) {
    require_defined(object);
    if (const Namespace* space = object.as<Namespace>()) {
        const Value* value = space->attributes.find(name);
        return value ? std::optional(*value) : std::nullopt;
    }
    if (is_unsafe_attribute(runtime, object, name))
        return undefined(
            fmt::format("access to attribute {} of '{}' object is unsafe.", repr_of_text(name), type_name(object)));
    if (const Method method = find_method(object, name)) return bound_method(runtime, object, name, method);
    return object.is_object() ? object.object()->attribute(runtime, name) : std::nullopt;
}

Value missing_attribute(const Value& object, std::string_view name) {
    return undefined(fmt::format("{} has no attribute {}", repr_of_text(object_name(object)), repr_of_text(name)));
}

Value missing_item(Runtime& runtime, const Value& object, const Value& key) {
    if (key.is_string()) return missing_attribute(object, key.str());
    TextBuilder repr;
    append_repr(runtime, key, repr);
    return undefined(fmt::format("{} has no element {}", object_name(object), repr.take().bytes));
}

/// An index that counts from the end if it is negative; nothing if it is out of range.
std::optional<size_t> place_of(int64_t index, size_t size) {
    const auto n = static_cast<int64_t>(size);
    if (index < 0) index += n;
    return index >= 0 && index < n ? std::optional(static_cast<size_t>(index)) : std::nullopt;
}

std::optional<Value> item_at(Runtime& runtime, const Value& object, int64_t index) {
    if (object.is_string()) {
        const Text& text = object.text();
        const auto place = place_of(index, text.n_chars);
        if (!place) return std::nullopt;
        if (!text.is_ascii()) runtime.spend_bytes(text.bytes.size());
        return runtime.string(characters(text, *place, 1));
    }
    const List* list = object.as<List>();
    if (!list || (list->type != ListType::List && list->type != ListType::Tuple && list->type != ListType::Range))
        return std::nullopt;
    const auto place = place_of(index, list->items.size());
    return place ? std::optional(list->items[*place]) : std::nullopt;
}

std::optional<int64_t> slice_bound(const Value& bound) {
    if (bound.is_none() || bound.is_undefined()) return std::nullopt;
    if (!bound.is_integral()) refuse("slice indices must be integers or None or have an __index__ method");
    return bound.integer();
}

/// The places that a slice takes: first, first + stride …
struct Places {
    int64_t first = 0, last = 0, stride = 1;  ///< last: where it ends, exclusive
    size_t count = 0;
    size_t operator[](size_t i) const { return static_cast<size_t>(first + static_cast<int64_t>(i) * stride); }
};

/// As Python's slice.indices counts them.
Places slice_places(const Value& start, const Value& stop, const Value& step, size_t size) {
    const int64_t stride = std::max(slice_bound(step).value_or(1), -INT64_MAX);
    if (stride == 0) refuse("slice step cannot be zero");
    const auto n = static_cast<int64_t>(size);
    const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? n : n - 1;
    const auto clamped = [&](const Value& bound, int64_t otherwise) {
        const auto given = slice_bound(bound);
        if (!given) return otherwise;
        return std::clamp(*given < 0 ? *given + n : *given, low, high);
    };
    const int64_t first = clamped(start, stride > 0 ? low : high), last = clamped(stop, stride > 0 ? high : low);
    const int64_t distance = stride > 0 ? last - first : first - last;
    const int64_t count = distance > 0 ? (distance - 1) / std::abs(stride) + 1 : 0;
    return {first, last, stride, static_cast<size_t>(count)};
}

Text pick_characters(Runtime& runtime, const Text& text, const Places& places) {
    if (places.count == 0) return Text();
    if (places.stride == 1) return characters(text, places[0], places.count);
    runtime.reserve(text.n_chars * sizeof(size_t));
    runtime.spend(text.n_chars / 4);
    std::vector<size_t> begins;
    for (size_t at = 0; at < text.bytes.size(); at += code_point_at(text.bytes, at).size) begins.push_back(at);
    begins.push_back(text.bytes.size());
    TextBuilder out;
    for (size_t i = 0; i < places.count; ++i) out.append(text, begins[places[i]], begins[places[i] + 1]);
    return out.take();
}

}  // namespace

Value undefined(std::string why) { return Undefined{std::make_shared<const std::string>(std::move(why))}; }

Value get_attribute(Runtime& runtime, const Value& object, std::string_view name) {
    if (auto found = own_attribute(runtime, object, name)) return *found;
    if (const Dict* dict = object.as<Dict>())
        if (const Value* value = dict->find(name)) return *value;
    return missing_attribute(object, name);
}

Value get_item(Runtime& runtime, const Value& object, const Value& key) {
    require_defined(object);
    if (const Dict* dict = object.as<Dict>()) {
        const bool hashable = !key.as<Dict>() && (!key.as<List>() || is_list_type(key, ListType::Tuple));
        if (const Value* value = hashable ? dict->find(runtime, key) : nullptr) return *value;
    } else if (key.is_integral()) {
        if (auto item = item_at(runtime, object, key.integer())) return *item;
    }
    if (key.is_string())
        if (auto found = own_attribute(runtime, object, key.str())) return *found;
    return missing_item(runtime, object, key);
}

Value get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop, const Value& step) {
    require_defined(object);
    if (object.is_string()) {
        const Text& text = object.text();
        Text result = pick_characters(runtime, text, slice_places(start, stop, step, text.n_chars));
        result.markup = text.markup;
        return runtime.string(std::move(result));
    }
    const List* list = object.as<List>();
    if (!list || (list->type != ListType::List && list->type != ListType::Tuple && list->type != ListType::Range))
        refuse("'{}' object is not subscriptable", type_name(object));
    const Places places = slice_places(start, stop, step, list->items.size());
    runtime.spend(places.count / 4);
    runtime.reserve(places.count * sizeof(Value));
    std::vector<Value> items;
    for (size_t i = 0; i < places.count; ++i) items.push_back(list->items[places[i]]);
    List* result = runtime.list(std::move(items), list->type);
    result->start = list->start + places.first * list->step;
    result->stop = list->start + places.last * list->step;
    result->step = places.stride * list->step;
    return result;
}

std::vector<Value> items_of(Runtime& runtime, const Value& iterable) {
    std::vector<Value> items;
    if (iterable.is_string()) {
        const Text& text = iterable.text();
        runtime.spend(text.n_chars);
        runtime.reserve(text.n_chars * sizeof(Value));
        for (size_t at = 0; at < text.bytes.size();) {
            const size_t size = code_point_at(text.bytes, at).size;
            TextBuilder character;
            character.append(text, at, at + size);
            items.emplace_back(runtime.string(character.take()));
            at += size;
        }
    } else if (const List* list = iterable.as<List>()) {
        items = list->items;
    } else if (const Dict* dict = iterable.as<Dict>()) {
        for (const auto& [key, value] : dict->entries) items.push_back(key);
    } else if (Iterator* iterator = iterable.as<Iterator>()) {
        items.assign(iterator->items.begin() + static_cast<std::ptrdiff_t>(iterator->next), iterator->items.end());
        iterator->next = iterator->items.size();
    } else if (!iterable.is_undefined()) {
        refuse("'{}' object is not iterable", type_name(iterable));
    }
    runtime.spend(items.size() / 4);
    return items;
}

bool is_iterable(const Value& value) {
    return value.is_string() || value.is_undefined() || value.as<List>() || value.as<Dict>() || value.as<Iterator>() ||
           (value.is_object() && value.object()->kind == ObjectKind::Loop);
}

std::optional<size_t> length_of(const Value& value) {
    if (value.is_undefined()) return 0;
    if (value.is_string()) return value.text().n_chars;
    if (const List* list = value.as<List>()) return list->items.size();
    if (const Dict* dict = value.as<Dict>()) return dict->entries.size();
    const auto length = value.is_object() ? value.object()->length() : std::nullopt;
    return length ? std::optional(static_cast<size_t>(*length)) : std::nullopt;
}

Text characters(const Text& text, size_t first, size_t n) {
    const size_t begin = text.byte_of(first);
    size_t end = begin;
    if (text.is_ascii())
        end = begin + n;
    else
        for (; n > 0; --n) end += code_point_at(text.bytes, end).size;
    TextBuilder out;
    out.append(text, begin, end);
    Text result = out.take();
    result.markup = text.markup;
    return result;
}

}  // namespace llm::jinja
