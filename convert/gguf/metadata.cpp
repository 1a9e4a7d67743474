#include "convert/gguf/metadata.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "ggmlx/core/error.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

struct KindInfo {
    std::string_view name;
    size_t bytes;
};
constexpr KindInfo kKinds[kGgufKindCount] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},    {"u32", 4},
                                             {"i32", 4}, {"f32", 4}, {"bool", 1}, {"string", 0}, {"array", 0},
                                             {"u64", 8}, {"i64", 8}, {"f64", 8}};

template <class T>
T number_at(std::span<const std::byte> data, uint64_t index) {
    T value;
    std::memcpy(&value, data.data() + index * sizeof value, sizeof value);
    return value;
}

/// An element of an integer kind; nothing for other kinds and for what int64 cannot hold.
std::optional<int64_t> integer_at(const GgufValue& value, uint64_t index) {
    switch (value.kind) {
        case GgufKind::U8:
            return number_at<uint8_t>(value.data, index);
        case GgufKind::I8:
            return number_at<int8_t>(value.data, index);
        case GgufKind::U16:
            return number_at<uint16_t>(value.data, index);
        case GgufKind::I16:
            return number_at<int16_t>(value.data, index);
        case GgufKind::U32:
            return number_at<uint32_t>(value.data, index);
        case GgufKind::I32:
            return number_at<int32_t>(value.data, index);
        case GgufKind::I64:
            return number_at<int64_t>(value.data, index);
        case GgufKind::U64: {
            const auto number = number_at<uint64_t>(value.data, index);
            if (number > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
            return static_cast<int64_t>(number);
        }
        default:
            return std::nullopt;
    }
}

double shortest_decimal(float value) {
    double result = static_cast<double>(value);
    const std::string text = fmt::format("{}", value);
    if (std::isfinite(value)) std::from_chars(text.data(), text.data() + text.size(), result);
    return result;
}

std::string kind_text(const GgufValue& value) {
    return value.is_array ? fmt::format("an array of {}", name(value.kind)) : std::string(name(value.kind));
}

}  // namespace

std::string_view name(GgufKind kind) { return kKinds[static_cast<size_t>(kind)].name; }
size_t fixed_bytes(GgufKind kind) { return kKinds[static_cast<size_t>(kind)].bytes; }

void GgufMetadata::add(std::string_view key, const GgufValue& value) {
    require(values_.emplace(key, value).second, ErrorKind::CorruptFile, "{}: the key \"{}\" occurs twice", path_, key);
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second;
}

uint64_t GgufMetadata::count(std::string_view key) const {
    const GgufValue* value = find(key);
    return value && value->is_array ? value->count : 0;
}

void GgufMetadata::wrong_kind(std::string_view key, std::string_view wanted, const GgufValue& value) const {
    fail(ErrorKind::CorruptFile, "{}: {} should be {}, not {}", path_, key, wanted, kind_text(value));
}

void GgufMetadata::missing(std::string_view key) const { fail(ErrorKind::CorruptFile, "{} has no {}", path_, key); }

const GgufValue* GgufMetadata::find_scalar(std::string_view key, std::string_view wanted) const {
    const GgufValue* value = find(key);
    if (value && value->is_array) wrong_kind(key, wanted, *value);
    return value;
}

const GgufValue* GgufMetadata::find_array(std::string_view key, std::string_view wanted) const {
    const GgufValue* value = find(key);
    if (value && !value->is_array) wrong_kind(key, wanted, *value);
    return value;
}

std::optional<int64_t> GgufMetadata::integer(std::string_view key, int64_t min, int64_t max) const {
    const GgufValue* value = find_scalar(key, "an integer");
    if (!value) return std::nullopt;
    const auto number = integer_at(*value, 0);
    if (!number && value->kind != GgufKind::U64) wrong_kind(key, "an integer", *value);
    require(number && *number >= min && *number <= max, ErrorKind::CorruptFile, "{}: {} is {}, outside {} to {}", path_,
            key, number ? std::to_string(*number) : std::to_string(number_at<uint64_t>(value->data, 0)), min, max);
    return number;
}

std::optional<double> GgufMetadata::real(std::string_view key, double min, double max) const {
    const GgufValue* value = find_scalar(key, "a number");
    if (!value) return std::nullopt;
    double number = 0;
    if (value->kind == GgufKind::F32)
        number = shortest_decimal(number_at<float>(value->data, 0));
    else if (value->kind == GgufKind::F64)
        number = number_at<double>(value->data, 0);
    else if (const auto integer = integer_at(*value, 0))
        number = static_cast<double>(*integer);
    else
        wrong_kind(key, "a number", *value);
    require(number >= min && number <= max, ErrorKind::CorruptFile, "{}: {} is {}, outside {} to {}", path_, key,
            number, min, max);
    return number;
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
    const GgufValue* value = find_scalar(key, "a bool");
    if (!value) return std::nullopt;
    if (value->kind != GgufKind::Bool) wrong_kind(key, "a bool", *value);
    return number_at<uint8_t>(value->data, 0) != 0;
}

std::optional<std::string_view> GgufMetadata::text(std::string_view key) const {
    const GgufValue* value = find_scalar(key, "a string");
    if (!value) return std::nullopt;
    if (value->kind != GgufKind::String) wrong_kind(key, "a string", *value);
    const auto* chars = reinterpret_cast<const char*>(value->data.data());
    return std::string_view(chars + sizeof(uint64_t), value->data.size() - sizeof(uint64_t));
}

std::vector<std::string_view> GgufMetadata::texts(std::string_view key) const {
    const GgufValue* value = find_array(key, "an array of strings");
    if (!value) return {};
    if (value->kind != GgufKind::String) wrong_kind(key, "an array of strings", *value);
    std::vector<std::string_view> result;
    result.reserve(value->count);
    auto rest = value->data;
    for (uint64_t i = 0; i < value->count; ++i) {
        const auto size = number_at<uint64_t>(rest, 0);
        result.emplace_back(reinterpret_cast<const char*>(rest.data()) + sizeof size, size);
        rest = rest.subspan(sizeof size + size);
    }
    return result;
}

std::vector<int64_t> GgufMetadata::integers(std::string_view key) const {
    const GgufValue* value = find_array(key, "an array of integers");
    if (!value) return {};
    std::vector<int64_t> result;
    result.reserve(value->count);
    for (uint64_t i = 0; i < value->count; ++i) {
        const auto number = integer_at(*value, i);
        if (!number) wrong_kind(key, "an array of integers", *value);
        result.push_back(*number);
    }
    return result;
}

std::vector<float> GgufMetadata::reals(std::string_view key) const {
    const GgufValue* value = find_array(key, "an array of f32");
    if (!value) return {};
    if (value->kind != GgufKind::F32) wrong_kind(key, "an array of f32", *value);
    std::vector<float> result(value->count);
    if (!result.empty()) std::memcpy(result.data(), value->data.data(), value->data.size());
    return result;
}

int64_t GgufMetadata::required_integer(std::string_view key, int64_t min, int64_t max) const {
    const auto value = integer(key, min, max);
    if (!value) missing(key);
    return *value;
}

double GgufMetadata::required_real(std::string_view key, double min, double max) const {
    const auto value = real(key, min, max);
    if (!value) missing(key);
    return *value;
}

std::string_view GgufMetadata::required_text(std::string_view key) const {
    const auto value = text(key);
    if (!value) missing(key);
    return *value;
}

}  // namespace convert
