#include "src/chat/value.h"

#include <algorithm>

#include "src/chat/compare.h"

namespace llm::jinja {
namespace {

constexpr size_t kNoEntry = static_cast<size_t>(-1);
constexpr size_t kIndexedFrom = 16;  // fewer entries are looked through one by one

std::string_view list_name(ListType type) {
    switch (type) {
        case ListType::List:
            return "list";
        case ListType::Tuple:
            return "tuple";
        case ListType::Range:
            return "range";
        case ListType::DictKeys:
            return "dict_keys";
        case ListType::DictValues:
            return "dict_values";
        case ListType::DictItems:
            break;
    }
    return "dict_items";
}

std::string_view object_type_name(const Object& object) {
    switch (object.kind) {
        case ObjectKind::List:
            return list_name(static_cast<const List&>(object).type);
        case ObjectKind::Dict:
            return "dict";
        case ObjectKind::Namespace:
            return "Namespace";
        case ObjectKind::Iterator:
            return "generator";
        case ObjectKind::Function:
            return "function";
        case ObjectKind::Macro:
            return "Macro";
        case ObjectKind::Loop:
            return "LoopContext";
        case ObjectKind::Cycler:
            return "Cycler";
        case ObjectKind::Joiner:
            break;
    }
    return "Joiner";
}

}  // namespace

Value Object::call(Runtime&, Arguments&) { refuse("'{}' object is not callable", object_type_name(*this)); }

template <class Same>
size_t Dict::position(size_t hash, Same&& same) const {
    if (index_.empty()) {
        for (size_t i = 0; i < entries.size(); ++i)
            if (hashes_[i] == hash && same(entries[i].first)) return i;
        return kNoEntry;
    }
    const auto [begin, end] = index_.equal_range(hash);
    for (auto it = begin; it != end; ++it)
        if (same(entries[it->second].first)) return it->second;
    return kNoEntry;
}

const Value* Dict::find(Runtime& runtime, const Value& key) const {
    const size_t i = position(hash_of(runtime, key), [&](const Value& other) { return equal(runtime, key, other); });
    return i == kNoEntry ? nullptr : &entries[i].second;
}

const Value* Dict::find(std::string_view key) const {
    const size_t i =
        position(hash_of(key), [&](const Value& other) { return other.is_string() && other.str() == key; });
    return i == kNoEntry ? nullptr : &entries[i].second;
}

void Dict::set(Runtime& runtime, const Value& key, Value value) {
    const size_t hash = hash_of(runtime, key);
    const size_t i = position(hash, [&](const Value& other) { return equal(runtime, key, other); });
    if (i != kNoEntry) {
        entries[i].second = std::move(value);
        return;
    }
    runtime.grow(4);  // key, value and their place in the index
    entries.emplace_back(key, std::move(value));
    hashes_.push_back(hash);
    if (!index_.empty())
        index_.emplace(hash, entries.size() - 1);
    else if (entries.size() >= kIndexedFrom)
        rebuild_index();
}

void Dict::erase(Runtime& runtime, const Value& key) {
    const size_t i = position(hash_of(runtime, key), [&](const Value& other) { return equal(runtime, key, other); });
    if (i == kNoEntry) return;
    runtime.spend(entries.size());
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
    hashes_.erase(hashes_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!index_.empty()) rebuild_index();
}

void Dict::clear() {
    entries.clear();
    hashes_.clear();
    index_.clear();
}

void Dict::rebuild_index() {
    index_.clear();
    for (size_t i = 0; i < entries.size(); ++i) index_.emplace(hashes_[i], i);
}

bool is_list_type(const Value& value, ListType type) {
    const List* list = value.as<List>();
    return list && list->type == type;
}

bool is_callable(const Value& value) {
    if (!value.is_object()) return value.is_undefined();  // it has a __call__, which fails
    const ObjectKind kind = value.object()->kind;
    return kind == ObjectKind::Function || kind == ObjectKind::Macro || kind == ObjectKind::Loop ||
           kind == ObjectKind::Joiner;
}

std::string_view type_name(const Value& value) {
    if (value.is_undefined()) return "Undefined";
    if (value.is_none()) return "NoneType";
    if (value.is_bool()) return "bool";
    if (value.is_int()) return "int";
    if (value.is_float()) return "float";
    if (value.is_string()) return value.text().markup ? "Markup" : "str";
    return object_type_name(*value.object());
}

std::string object_name(const Value& value) {
    if (value.is_none()) return "None";
    const std::string name(type_name(value));
    if (value.is_string() && value.text().markup) return "markupsafe.Markup object";
    if (value.as<Namespace>() || (value.is_object() && (value.object()->kind == ObjectKind::Cycler ||
                                                        value.object()->kind == ObjectKind::Joiner)))
        return "jinja2.utils." + name + " object";
    if (value.is_object() && (value.object()->kind == ObjectKind::Loop || value.object()->kind == ObjectKind::Macro))
        return "jinja2.runtime." + name + " object";
    return name + " object";
}

}  // namespace llm::jinja
