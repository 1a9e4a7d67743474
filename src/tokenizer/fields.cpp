#include "src/tokenizer/fields.h"

#include <algorithm>

#include "ggmlx/core/error.h"

namespace llm {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;
using nlohmann::json;

Fields::Fields(const json& object, std::string where) : json_(object), where_(std::move(where)) {
    require(object.is_object(), ErrorKind::CorruptFile, "tokenizer.json: {} is {}, not an object", where_,
            object.type_name());
}

void Fields::only(std::initializer_list<std::string_view> known) const {
    for (const auto& item : json_.items())
        require(std::find(known.begin(), known.end(), item.key()) != known.end(), ErrorKind::Unsupported,
                "tokenizer.json: field '{}' of {} is not supported", item.key(), where_);
}

void Fields::wrong(std::string_view key, std::string_view expected) const {
    fail(ErrorKind::CorruptFile, "tokenizer.json: {} needs a field '{}' that is {}", where_, key, expected);
}

const json* Fields::find(std::string_view key) const {
    const auto it = json_.find(key);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
}

const json& Fields::at(std::string_view key) const {
    const json* value = find(key);
    if (!value) wrong(key, "not null");
    return *value;
}

const json& Fields::list(std::string_view key) const {
    const json& value = at(key);
    if (!value.is_array()) wrong(key, "a list");
    return value;
}

const json& Fields::constructs(std::string_view key) const {
    const json& value = list(key);
    if (!std::all_of(value.begin(), value.end(), [](const json& item) { return item.is_object(); }))
        wrong(key, "a list of objects");
    return value;
}

std::string Fields::text(std::string_view key) const {
    const json& value = at(key);
    if (!value.is_string()) wrong(key, "a string");
    return value.get<std::string>();
}

std::string Fields::text(std::string_view key, std::string_view if_missing) const {
    return find(key) ? text(key) : std::string(if_missing);
}

bool Fields::flag(std::string_view key) const {
    const json& value = at(key);
    if (!value.is_boolean()) wrong(key, "true or false");
    return value.get<bool>();
}

bool Fields::flag(std::string_view key, bool if_missing) const { return find(key) ? flag(key) : if_missing; }

int64_t Fields::integer(std::string_view key) const {
    const json& value = at(key);
    if (!value.is_number_integer()) wrong(key, "an integer");
    return value.get<int64_t>();
}

Construct::Construct(const json& object, std::string_view stage)
    : type(Fields(object, std::string(stage)).text("type")), fields(object, std::string(stage) + " " + type) {}

void Construct::unknown() const { fail(ErrorKind::Unsupported, "tokenizer.json: {} is not supported", fields.where()); }

}  // namespace llm
