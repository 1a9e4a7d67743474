// Filters about numbers, and from_json.

#include <charconv>
#include <cmath>

#include "src/chat/access.h"
#include "src/chat/arguments.h"
#include "src/chat/characters.h"
#include "src/chat/compare.h"
#include "src/chat/filters.h"
#include "src/chat/json_values.h"
#include "src/chat/method_table.h"
#include "src/chat/operators.h"

namespace llm::jinja {
namespace {

/// Without white space around it, and without single underscores between digits; nothing if they stand elsewhere.
std::optional<std::string> plain_number(std::string_view text) {
    const size_t begin = skip_space(text, 0, text.size());
    text = text.substr(begin, skip_space_back(text, begin, text.size()) - begin);
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto is_digit_at = [&](size_t at) {
            return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at]));
        };
        if (text[i] != '_')
            result += text[i];
        else if (i == 0 || !is_digit_at(i - 1) || !is_digit_at(i + 1))
            return std::nullopt;
    }
    return result;
}

std::optional<int64_t> parse_int(std::string_view text, int64_t base) {
    const auto number = plain_number(text);
    if (!number) return std::nullopt;
    std::string_view digits = *number;
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    const char mark = digits.size() > 2 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : '\0';
    const int64_t marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (base == 0) base = marked ? marked : 10;
    if (marked == base) digits.remove_prefix(2);
    if (base < 2 || base > 36) refuse("int: base must be >= 2 and <= 36, or 0");
    uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
    if (end != digits.data() + digits.size() || digits.empty() || error == std::errc::invalid_argument)
        return std::nullopt;
    if (error != std::errc() || value > static_cast<uint64_t>(INT64_MAX))
        refuse("int: {} is too large (64 bits at most)", text);
    return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

std::optional<double> parse_float(std::string_view text) {
    const auto number = plain_number(text);
    if (!number || number->empty()) return std::nullopt;
    std::string_view digits = *number;
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    if (digits.empty() || digits[0] == '-' || digits.find('(') != digits.npos) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) value = digits.find("e-") != digits.npos ? 0.0 : HUGE_VAL;
    return negative ? -value : value;
}

std::optional<double> to_float(const Value& value) {
    if (value.is_number()) return value.number();
    return value.is_string() ? parse_float(value.str()) : std::nullopt;
}

std::optional<int64_t> truncated(double value) {
    if (std::isinf(value)) refuse("cannot convert float infinity to integer");
    if (std::isnan(value)) return std::nullopt;
    if (std::fabs(value) >= 0x1p63) refuse("int: {} is too large (64 bits at most)", value);
    return static_cast<int64_t>(value);
}

Value int_filter(Runtime&, const Value& input, Arguments& arguments) {
    const Bound bound("int", arguments, {"default", "base"});
    require_defined(input);
    if (input.is_integral()) return input.integer();
    std::optional<int64_t> result;
    if (input.is_string()) result = parse_int(input.str(), bound.integer_or(1, 10));
    if (const auto real = result ? std::nullopt : to_float(input)) result = truncated(*real);
    return result ? Value(*result) : bound.value_or(0, int64_t{0});
}

Value float_filter(Runtime&, const Value& input, Arguments& arguments) {
    const Bound bound("float", arguments, {"default"});
    require_defined(input);
    const auto result = to_float(input);
    return result ? Value(*result) : bound.value_or(0, 0.0);
}

Value abs_filter(Runtime&, const Value& input, Arguments& arguments) {
    const Bound bound("abs", arguments, {});
    require_defined(input);
    if (!input.is_number()) refuse("bad operand type for abs(): '{}'", type_name(input));
    if (input.is_float()) return std::fabs(input.real());
    return input.integer() < 0 ? negate(input) : Value(input.integer());
}

/// To the nearest multiple of 10^-precision, halves to even, for a negative precision.
int64_t round_to_tens(int64_t value, int64_t precision) {
    if (precision < -18) return 0;
    int64_t unit = 1;
    for (; precision < 0; ++precision) unit *= 10;
    const int64_t quotient = value / unit, rest = value % unit, twice = 2 * (rest < 0 ? -rest : rest);
    const bool away = twice > unit || (twice == unit && quotient % 2 != 0);
    return (quotient + (away ? (value < 0 ? -1 : 1) : 0)) * unit;
}

double round_half_even(double value, int64_t precision) {
    if (!std::isfinite(value) || precision > 330) return value;
    if (precision < -330) return std::copysign(0.0, value);
    if (precision < 0) {
        const double unit = std::pow(10.0, static_cast<double>(-precision));
        return std::nearbyint(value / unit) * unit;
    }
    char digits[800];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, static_cast<int>(precision));
    double result = value;
    std::from_chars(digits, end.ptr, result);
    return result;
}

Value round_filter(Runtime&, const Value& input, Arguments& arguments) {
    const Bound bound("round", arguments, {"precision", "method"});
    require_defined(input);
    const std::string method = bound.has(1) ? bound.text(1).bytes : "common";
    const int64_t precision = bound.integer_or(0, 0);
    if (method != "common" && method != "ceil" && method != "floor") refuse("method must be common, ceil or floor");
    if (!input.is_number()) refuse("type {} doesn't define __round__ method", type_name(input));
    if (method == "common") {
        if (input.is_float()) return round_half_even(input.real(), precision);
        return precision < 0 ? round_to_tens(input.integer(), precision) : input.integer();
    }
    const double unit = std::pow(10.0, static_cast<double>(precision)), scaled = input.number() * unit;
    if (!std::isfinite(scaled)) refuse("cannot convert float {} to integer", scaled);
    return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit;
}

Value sum_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("sum", arguments, {"attribute", "start"});
    Value total = bound.value_or(1, int64_t{0});
    for (const Value& item : items_of(runtime, input)) {
        const Value term = attribute_path(runtime, item, bound.value_or(0, None{}));
        require_defined(term);
        total = apply(runtime, BinaryOp::Add, total, term);
    }
    return total;
}

Value from_json_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
    const Bound bound("from_json", arguments, {});
    require_defined(input);
    if (!input.is_string()) refuse("from_json: the value must be str, not {}", type_name(input));
    return parse_json(runtime, input.str(), input.text().origin_at(0));
}

}  // namespace

Filter find_number_filter(std::string_view name) {
    static constexpr std::pair<std::string_view, Filter> kFilters[] = {
        {"abs", abs_filter}, {"float", float_filter}, {"from_json", from_json_filter},
        {"int", int_filter}, {"round", round_filter}, {"sum", sum_filter},
    };
    return find_in(kFilters, name);
}

}  // namespace llm::jinja
