// Filters that apply a test or another filter to every item: select, reject, map and their kin.

#include "src/chat/access.h"
#include "src/chat/compare.h"
#include "src/chat/filters.h"
#include "src/chat/method_table.h"
#include "src/chat/tests.h"

namespace llm::jinja {
namespace {

std::string take_name(Arguments& arguments, std::string_view what) {
    if (arguments.positional.empty()) refuse("missing {}", what);
    const Value name = arguments.positional.front();
    arguments.positional.erase(arguments.positional.begin());
    if (!name.is_string()) refuse("{} must be a name, not {}", what, type_name(name));
    return name.str();
}

/// select and reject, of items or by an attribute of them; without a test's name, by truth.
template <bool keep, bool by_attribute>
Value choose(Runtime& runtime, const Value& input, Arguments& arguments) {
    Value attribute = None{};
    if (by_attribute) {
        if (arguments.positional.empty()) refuse("missing parameter for attribute name");
        attribute = arguments.positional.front();
        arguments.positional.erase(arguments.positional.begin());
    }
    const bool has_name = !arguments.positional.empty();
    const std::string name = has_name ? take_name(arguments, "the test") : "";
    std::vector<Value> chosen;
    for (const Value& item : truthy(input) ? items_of(runtime, input) : std::vector<Value>()) {
        const Value tested = by_attribute ? attribute_path(runtime, item, attribute) : item;
        const bool passes = has_name ? apply_test(runtime, name, tested, arguments) : truthy(tested);
        if (passes == keep) chosen.push_back(item);
    }
    return runtime.iterator(std::move(chosen));
}

/// map(attribute="name", default=…)
Value map_attribute(Runtime& runtime, const Value& input, const Arguments& arguments) {
    Value attribute = None{}, otherwise = None{};
    for (const auto& [name, value] : arguments.named) {
        if (name == "attribute")
            attribute = value;
        else if (name == "default")
            otherwise = value;
        else
            refuse("Unexpected keyword argument {}", name);
    }
    std::vector<Value> mapped;
    for (const Value& item : truthy(input) ? items_of(runtime, input) : std::vector<Value>()) {
        Value value = attribute_path(runtime, item, attribute);
        mapped.push_back(value.is_undefined() && !otherwise.is_none() ? otherwise : std::move(value));
    }
    return runtime.iterator(std::move(mapped));
}

Value map_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    if (arguments.positional.empty() && !arguments.named.empty()) return map_attribute(runtime, input, arguments);
    if (arguments.positional.empty()) refuse("map requires a filter argument");
    const std::string name = take_name(arguments, "the filter");
    if (!has_filter(name)) refuse("there is no filter named '{}'", name);
    std::vector<Value> mapped;
    for (const Value& item : truthy(input) ? items_of(runtime, input) : std::vector<Value>()) {
        Arguments own = arguments;
        const Runtime::Level level(runtime);  // map may name itself
        mapped.push_back(apply_filter(runtime, name, item, own));
    }
    return runtime.iterator(std::move(mapped));
}

}  // namespace

Filter find_choice_filter(std::string_view name) {
    static constexpr std::pair<std::string_view, Filter> kFilters[] = {
        {"map", map_filter},
        {"reject", choose<false, false>},
        {"rejectattr", choose<false, true>},
        {"select", choose<true, false>},
        {"selectattr", choose<true, true>},
    };
    return find_in(kFilters, name);
}

}  // namespace llm::jinja
