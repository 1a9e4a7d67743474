// Methods of lists, tuples and dicts. Those that change something are reached only where that is allowed.

#include <algorithm>

#include "src/chat/access.h"
#include "src/chat/arguments.h"
#include "src/chat/compare.h"
#include "src/chat/method_table.h"
#include "src/chat/methods.h"
#include "src/chat/python_text.h"

namespace llm::jinja {
namespace {

std::vector<Value>& items_in(const Value& self) { return self.as<List>()->items; }
const auto& entries_of(const Value& self) { return self.as<Dict>()->entries; }

Value list_index(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("index", arguments, {"value"}, 1);
    const auto& items = items_in(self);
    for (size_t i = 0; i < items.size(); ++i)
        if (equal(runtime, items[i], bound.value(0))) return static_cast<int64_t>(i);
    refuse("the value is not in the {}", type_name(self));
}

Value list_count(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("count", arguments, {"value"}, 1);
    const auto& items = items_in(self);
    return static_cast<int64_t>(std::count_if(items.begin(), items.end(),
                                              [&](const Value& item) { return equal(runtime, item, bound.value(0)); }));
}

Value list_append(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("append", arguments, {"value"}, 1);
    runtime.grow(1);
    items_in(self).push_back(bound.value(0));
    return None{};
}

Value list_extend(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("extend", arguments, {"values"}, 1);
    const auto more = items_of(runtime, bound.value(0));
    runtime.grow(more.size());
    items_in(self).insert(items_in(self).end(), more.begin(), more.end());
    return None{};
}

Value list_insert(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("insert", arguments, {"index", "value"}, 2);
    auto& items = items_in(self);
    const auto size = static_cast<int64_t>(items.size());
    int64_t at = std::clamp(bound.integer_or(0, 0), -size, size);
    if (at < 0) at += size;
    runtime.spend(items.size() / 16);
    runtime.grow(1);
    items.insert(items.begin() + at, bound.value(1));
    return None{};
}

Value list_pop(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("pop", arguments, {"index"});
    auto& items = items_in(self);
    const auto size = static_cast<int64_t>(items.size());
    int64_t at = bound.integer_or(0, -1);
    if (at < 0) at += size;
    if (items.empty()) refuse("pop from empty list");
    if (at < 0 || at >= size) refuse("pop index out of range");
    runtime.spend(items.size() / 16);
    Value value = items[static_cast<size_t>(at)];
    items.erase(items.begin() + at);
    return value;
}

Value list_remove(Runtime& runtime, const Value& self, Arguments& arguments) {
    const int64_t at = list_index(runtime, self, arguments).integer();
    runtime.spend(items_in(self).size() / 16);
    items_in(self).erase(items_in(self).begin() + at);
    return None{};
}

Value list_clear(Runtime&, const Value& self, Arguments& arguments) {
    const Bound bound("clear", arguments, {});
    items_in(self).clear();
    return None{};
}

Value list_copy(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("copy", arguments, {});
    runtime.spend(items_in(self).size() / 8);
    return runtime.list(items_in(self));
}

Value dict_get(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("get", arguments, {"key", "default"}, 1);
    const Value* found = self.as<Dict>()->find(runtime, bound.value(0));
    return found ? *found : bound.value_or(1, None{});
}

Value dict_items(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("items", arguments, {});
    std::vector<Value> items;
    for (const auto& [key, value] : entries_of(self)) {
        runtime.spend(1);
        items.emplace_back(runtime.list({key, value}, ListType::Tuple));
    }
    return runtime.list(std::move(items), ListType::DictItems);
}

template <bool keys>
Value dict_part(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound(keys ? "keys" : "values", arguments, {});
    runtime.spend(entries_of(self).size() / 8);
    std::vector<Value> items;
    for (const auto& [key, value] : entries_of(self)) items.push_back(keys ? key : value);
    return runtime.list(std::move(items), keys ? ListType::DictKeys : ListType::DictValues);
}

Value dict_copy(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("copy", arguments, {});
    Dict* copy = runtime.dict();
    for (const auto& [key, value] : entries_of(self)) copy->set(runtime, key, value);
    return copy;
}

Value dict_pop(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("pop", arguments, {"key", "default"}, 1);
    Dict* dict = self.as<Dict>();
    const Value* found = dict->find(runtime, bound.value(0));
    if (!found && bound.has(1)) return bound.value(1);
    if (!found) refuse("there is no key {} to pop", repr_of_text(to_text(runtime, bound.value(0)).bytes));
    Value value = *found;
    dict->erase(runtime, bound.value(0));
    return value;
}

Value dict_update(Runtime& runtime, const Value& self, Arguments& arguments) {
    Dict* dict = self.as<Dict>();
    for (const Value& other : arguments.positional) {
        const Dict* from = other.as<Dict>();
        if (!from) refuse("update() takes a dict, not {}", type_name(other));
        const auto entries = from->entries;
        for (const auto& [key, value] : entries) dict->set(runtime, key, value);
    }
    for (const auto& [name, value] : arguments.named) dict->set(runtime, runtime.string(name), value);
    return None{};
}

Value dict_setdefault(Runtime& runtime, const Value& self, Arguments& arguments) {
    const Bound bound("setdefault", arguments, {"key", "default"}, 1);
    Dict* dict = self.as<Dict>();
    if (const Value* found = dict->find(runtime, bound.value(0))) return *found;
    dict->set(runtime, bound.value(0), bound.value_or(1, None{}));
    return bound.value_or(1, None{});
}

Value dict_clear(Runtime&, const Value& self, Arguments& arguments) {
    const Bound bound("clear", arguments, {});
    self.as<Dict>()->clear();
    return None{};
}

}  // namespace

Method find_list_method(std::string_view name) {
    static constexpr std::pair<std::string_view, Method> kMethods[] = {
        {"index", list_index},   {"count", list_count},   {"copy", list_copy},
        {"append", list_append}, {"pop", list_pop},       {"extend", list_extend},
        {"insert", list_insert}, {"remove", list_remove}, {"clear", list_clear},
    };
    return find_in(kMethods, name);
}

Method find_dict_method(std::string_view name) {
    static constexpr std::pair<std::string_view, Method> kMethods[] = {
        {"get", dict_get},     {"items", dict_items}, {"keys", dict_part<true>}, {"values", dict_part<false>},
        {"copy", dict_copy},   {"pop", dict_pop},     {"update", dict_update},   {"setdefault", dict_setdefault},
        {"clear", dict_clear},
    };
    return find_in(kMethods, name);
}

}  // namespace llm::jinja
