#include "src/config_json.h"

#include "ggmlx/core/error.h"

namespace llm {

using ggmlx::ErrorKind;
using nlohmann::json;

JsonFields JsonFields::parse(std::string where, std::string_view text) {
    json root;
    try {
        root = json::parse(text);
    } catch (const json::exception& error) {
        ggmlx::fail(ErrorKind::CorruptFile, "{} is no valid JSON: {}", where, error.what());
    }
    ggmlx::require(root.is_object(), ErrorKind::CorruptFile, "{} is no JSON object", where);
    return {std::move(where), std::move(root)};
}

JsonFields JsonFields::parse_optional(std::string where, std::string_view text) {
    return parse(std::move(where), text.empty() ? "{}" : text);
}

const json* JsonFields::find(std::string_view name) const {
    auto it = object_.find(name);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
}

void JsonFields::wrong_type(std::string_view name, std::string_view wanted, const json& value) const {
    std::string shown = value.is_structured() ? value.type_name() : value.dump(-1, ' ', true);
    ggmlx::fail(ErrorKind::CorruptFile, "{}: {} should be {}, not {}", where_, name, wanted, shown);
}

int64_t JsonFields::checked_integer(std::string_view name, const json& value, IntRange range) const {
    if (!value.is_number_integer()) wrong_type(name, "a whole number", value);
    const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX) : true;
    ggmlx::require(fits && value.get<int64_t>() >= range.min && value.get<int64_t>() <= range.max,
                   ErrorKind::CorruptFile, "{}: {} is {}, outside {} to {}", where_, name, value.dump(), range.min,
                   range.max);
    return value.get<int64_t>();
}

std::optional<int64_t> JsonFields::integer(std::string_view name, IntRange range) const {
    const json* value = find(name);
    return value ? std::optional(checked_integer(name, *value, range)) : std::nullopt;
}

std::optional<double> JsonFields::real(std::string_view name, RealRange range) const {
    const json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_number()) wrong_type(name, "a number", *value);
    const auto number = value->get<double>();
    ggmlx::require(number >= range.min && number <= range.max, ErrorKind::CorruptFile, "{}: {} is {}, outside {} to {}",
                   where_, name, value->dump(), range.min, range.max);
    return number;
}

std::optional<bool> JsonFields::boolean(std::string_view name) const {
    const json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_boolean()) wrong_type(name, "true or false", *value);
    return value->get<bool>();
}

std::optional<std::string> JsonFields::text(std::string_view name) const {
    const json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_string()) wrong_type(name, "a string", *value);
    return value->get<std::string>();
}

std::optional<std::vector<int64_t>> JsonFields::integers(std::string_view name, IntRange range) const {
    const json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_array()) return std::vector{checked_integer(name, *value, range)};
    std::vector<int64_t> result;
    for (const json& element : *value) result.push_back(checked_integer(name, element, range));
    return result;
}

std::optional<std::vector<std::string>> JsonFields::texts(std::string_view name) const {
    const json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_array()) wrong_type(name, "a list of strings", *value);
    std::vector<std::string> result;
    for (const json& element : *value) {
        if (!element.is_string()) wrong_type(name, "a list of strings", element);
        result.push_back(element.get<std::string>());
    }
    return result;
}

std::optional<JsonFields> JsonFields::object(std::string_view name) const {
    const json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_object()) wrong_type(name, "an object", *value);
    return JsonFields(where_ + ": " + std::string(name), *value);
}

int64_t JsonFields::required_integer(std::string_view name, IntRange range) const {
    auto value = integer(name, range);
    ggmlx::require(value.has_value(), ErrorKind::CorruptFile, "{} has no {}", where_, name);
    return *value;
}

double JsonFields::required_real(std::string_view name, RealRange range) const {
    auto value = real(name, range);
    ggmlx::require(value.has_value(), ErrorKind::CorruptFile, "{} has no {}", where_, name);
    return *value;
}

}  // namespace llm
