#include "src/chat/compare.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace llm::jinja {
namespace {

bool is_whole_int64(double d) { return d >= -0x1p63 && d < 0x1p63 && d == std::floor(d); }

/// -1, 0, 1; 2 where one is not a number.
int compare_numbers(const Value& a, const Value& b) {
    if (a.is_integral() && b.is_integral()) return (a.integer() > b.integer()) - (a.integer() < b.integer());
    const double x = a.number(), y = b.number();
    if (std::isnan(x) || std::isnan(y)) return 2;
    // A large int may lose digits as a double; then the other is compared as an int, if it is one.
    if (a.is_integral() && is_whole_int64(y)) return compare_numbers(a, Value(static_cast<int64_t>(y)));
    if (b.is_integral() && is_whole_int64(x)) return compare_numbers(Value(static_cast<int64_t>(x)), b);
    return (x > y) - (x < y);
}

bool equal_items(Runtime& runtime, const List& a, const List& b) {
    if (a.items.size() != b.items.size()) return false;
    for (size_t i = 0; i < a.items.size(); ++i)
        if (!equal(runtime, a.items[i], b.items[i])) return false;
    return true;
}

bool contains_all(Runtime& runtime, const List& all, const List& some) {
    return std::all_of(some.items.begin(), some.items.end(), [&](const Value& wanted) {
        return std::any_of(all.items.begin(), all.items.end(),
                           [&](const Value& item) { return equal(runtime, item, wanted); });
    });
}

bool equal_lists(Runtime& runtime, const List& a, const List& b) {
    if (&a == &b) return true;
    if (a.type != b.type || a.type == ListType::DictValues) return false;
    if (a.type == ListType::DictKeys || a.type == ListType::DictItems)
        return a.items.size() == b.items.size() && contains_all(runtime, a, b);
    return equal_items(runtime, a, b);
}

bool equal_dicts(Runtime& runtime, const Dict& a, const Dict& b) {
    if (a.entries.size() != b.entries.size()) return false;
    return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
        const Value* other = b.find(runtime, entry.first);
        return other && equal(runtime, entry.second, *other);
    });
}

[[noreturn]] void no_order(const Value& a, const Value& b, std::string_view symbol) {
    require_defined(a);
    require_defined(b);
    refuse("'{}' not supported between instances of '{}' and '{}'", symbol, type_name(a), type_name(b));
}

}  // namespace

void require_defined(const Value& value) {
    if (!value.is_undefined()) return;
    const auto& why = value.undefined().why;
    refuse("{}", why ? *why : "an undefined value was used");
}

bool equal(Runtime& runtime, const Value& a, const Value& b) {
    runtime.spend(1);
    if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
    if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
    if (a.is_none() && b.is_none()) return true;
    if (a.is_string() && b.is_string()) {
        if (a.str().size() == b.str().size()) runtime.spend_bytes(a.str().size());
        return a.str() == b.str();
    }
    if (!a.is_object() || !b.is_object()) return false;
    if (a.object() == b.object()) return true;
    const Runtime::Level level(runtime);
    if (const List* x = a.as<List>(), *y = b.as<List>(); x && y) return equal_lists(runtime, *x, *y);
    if (const Dict* x = a.as<Dict>(), *y = b.as<Dict>(); x && y) return equal_dicts(runtime, *x, *y);
    return false;
}

int order(Runtime& runtime, const Value& a, const Value& b, std::string_view symbol) {
    runtime.spend(1);
    if (a.is_number() && b.is_number()) return compare_numbers(a, b);
    if (a.is_string() && b.is_string()) {
        runtime.spend_bytes(std::min(a.str().size(), b.str().size()));
        const int c = a.str().compare(b.str());  // the order of UTF-8 is that of code points
        return (c > 0) - (c < 0);
    }
    const List *x = a.as<List>(), *y = b.as<List>();
    const bool ordered = x && y && x->type == y->type && (x->type == ListType::List || x->type == ListType::Tuple);
    if (!ordered) no_order(a, b, symbol);
    const Runtime::Level level(runtime);
    for (size_t i = 0; i < std::min(x->items.size(), y->items.size()); ++i)
        if (!equal(runtime, x->items[i], y->items[i])) return order(runtime, x->items[i], y->items[i], symbol);
    return (x->items.size() > y->items.size()) - (x->items.size() < y->items.size());
}

size_t hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

size_t hash_of(Runtime& runtime, const Value& value) {
    runtime.spend(1);
    if (value.is_string()) {
        runtime.spend_bytes(value.str().size());
        return hash_of(value.str());
    }
    if (value.is_integral()) return std::hash<int64_t>{}(value.integer());
    if (value.is_float() && is_whole_int64(value.real()))
        return std::hash<int64_t>{}(static_cast<int64_t>(value.real()));
    if (value.is_float()) return std::hash<double>{}(value.real());
    if (value.is_none()) return 1;
    if (value.is_undefined()) return 2;
    if (is_list_type(value, ListType::Tuple)) {
        const Runtime::Level level(runtime);
        size_t hash = 3;
        for (const Value& item : value.as<List>()->items) hash = hash * 1000003 + hash_of(runtime, item);
        return hash;
    }
    const List* list = value.as<List>();
    if (value.as<Dict>() || (list && list->type != ListType::Range)) refuse("unhashable type: '{}'", type_name(value));
    return std::hash<const void*>{}(value.object());
}

bool truthy(const Value& value) {
    if (value.is_undefined() || value.is_none()) return false;
    if (value.is_integral()) return value.integer() != 0;
    if (value.is_float()) return value.real() != 0;
    if (value.is_string()) return !value.str().empty();
    if (const List* list = value.as<List>()) return list->type == ListType::DictValues || !list->items.empty();
    if (const Dict* dict = value.as<Dict>()) return !dict->entries.empty();
    return true;
}

}  // namespace llm::jinja
