#include "src/chat/json_values.h"

#include <nlohmann/json.hpp>

#include "src/tokenizer/utf8.h"

namespace llm::jinja {
namespace {

using nlohmann::ordered_json;

TextPtr string_of(Runtime& runtime, const std::string& text, Origin origin) {
    return runtime.string(Text(is_valid_utf8(text) ? text : replace_invalid_utf8(text), origin));
}

Value array_of(Runtime& runtime, const ordered_json& json, Origin origin) {
    std::vector<Value> items;
    for (const ordered_json& item : json) items.push_back(value_of(runtime, item, origin));
    return runtime.list(std::move(items));
}

Value object_of(Runtime& runtime, const ordered_json& json, Origin origin) {
    Dict* dict = runtime.dict();
    for (const auto& [key, value] : json.items())
        dict->set(runtime, string_of(runtime, key, origin), value_of(runtime, value, origin));
    return dict;
}

}  // namespace

Value value_of(Runtime& runtime, const ordered_json& json, Origin origin) {
    runtime.spend(1);
    const Runtime::Level level(runtime);
    switch (json.type()) {
        case ordered_json::value_t::string:
            return string_of(runtime, json.get_ref<const std::string&>(), origin);
        case ordered_json::value_t::boolean:
            return json.get<bool>();
        case ordered_json::value_t::number_unsigned:
            if (json.get<uint64_t>() > INT64_MAX) refuse("the number {} is too large (64 bits at most)", json.dump());
            return json.get<int64_t>();
        case ordered_json::value_t::number_integer:
            return json.get<int64_t>();
        case ordered_json::value_t::number_float:
            return json.get<double>();
        case ordered_json::value_t::array:
            return array_of(runtime, json, origin);
        case ordered_json::value_t::object:
            return object_of(runtime, json, origin);
        default:
            return None{};
    }
}

Value parse_json(Runtime& runtime, std::string_view text, Origin origin) {
    runtime.spend_bytes(8 * text.size());
    runtime.reserve(16 * text.size());
    const auto json = ordered_json::parse(text, nullptr, false);
    if (json.is_discarded()) refuse("from_json: the text is no JSON");
    return value_of(runtime, json, origin);
}

}  // namespace llm::jinja
