#include "src/chat/operators.h"

#include <algorithm>
#include <cmath>

#include "src/chat/access.h"
#include "src/chat/compare.h"
#include "src/chat/python_text.h"
#include "src/chat/strings.h"

namespace llm::jinja {
namespace {

std::string_view symbol(BinaryOp op) {
    switch (op) {
        case BinaryOp::Add:
            return "+";
        case BinaryOp::Subtract:
            return "-";
        case BinaryOp::Multiply:
            return "*";
        case BinaryOp::Divide:
            return "/";
        case BinaryOp::FloorDivide:
            return "//";
        case BinaryOp::Modulo:
            return "%";
        case BinaryOp::Power:
            break;
    }
    return "** or pow()";
}

[[noreturn]] void no_operator(BinaryOp op, const Value& a, const Value& b) {
    require_defined(a);
    require_defined(b);
    if (op == BinaryOp::Add && (a.is_string() || a.as<List>()) && !b.is_float())
        refuse("can only concatenate {} (not \"{}\") to {}", type_name(a), type_name(b), type_name(a));
    refuse("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op), type_name(a), type_name(b));
}

[[noreturn]] void too_large() { refuse("the result is too large a whole number (64 bits at most)"); }

int64_t floor_divide(int64_t a, int64_t b) {
    if (b == 0) refuse("integer division or modulo by zero");
    if (b == -1 && a == INT64_MIN) too_large();
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t modulo(int64_t a, int64_t b) {
    if (b == 0) refuse("integer modulo by zero");
    if (b == -1) return 0;
    const int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double modulo(double a, double b) {
    if (b == 0) refuse("float modulo");
    const double r = std::fmod(a, b);
    if (r != 0) return (r < 0) != (b < 0) ? r + b : r;
    return std::copysign(0.0, b);
}

double floor_divide(double a, double b) {
    if (b == 0) refuse("float floor division by zero");
    const double mod = std::fmod(a, b);
    double div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;
    if (div == 0) return std::copysign(0.0, a / b);
    const double floored = std::floor(div);
    return div - floored > 0.5 ? floored + 1 : floored;
}

Value int_power(int64_t base, int64_t exponent) {
    if (exponent < 0) {
        if (base == 0) refuse("0.0 cannot be raised to a negative power");
        return std::pow(static_cast<double>(base), static_cast<double>(exponent));
    }
    int64_t result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) too_large();
        if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) too_large();
    }
    return result;
}

Value float_power(double base, double exponent) {
    if (base == 0 && exponent < 0) refuse("0.0 cannot be raised to a negative power");
    if (base < 0 && std::isfinite(exponent) && exponent != std::floor(exponent))
        refuse("a negative number to a fractional power is no real number");
    const double result = std::pow(base, exponent);
    if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent))
        refuse("(34, 'Numerical result out of range')");
    return result;
}

Value int_arithmetic(BinaryOp op, int64_t a, int64_t b) {
    int64_t result = 0;
    bool overflow = false;
    switch (op) {
        case BinaryOp::Add:
            overflow = __builtin_add_overflow(a, b, &result);
            break;
        case BinaryOp::Subtract:
            overflow = __builtin_sub_overflow(a, b, &result);
            break;
        case BinaryOp::Multiply:
            overflow = __builtin_mul_overflow(a, b, &result);
            break;
        case BinaryOp::Divide:
            if (b == 0) refuse("division by zero");
            return static_cast<double>(a) / static_cast<double>(b);
        case BinaryOp::FloorDivide:
            return floor_divide(a, b);
        case BinaryOp::Modulo:
            return modulo(a, b);
        case BinaryOp::Power:
            return int_power(a, b);
    }
    if (overflow) too_large();
    return result;
}

Value float_arithmetic(BinaryOp op, double a, double b) {
    switch (op) {
        case BinaryOp::Add:
            return a + b;
        case BinaryOp::Subtract:
            return a - b;
        case BinaryOp::Multiply:
            return a * b;
        case BinaryOp::Divide:
            if (b == 0) refuse("float division by zero");
            return a / b;
        case BinaryOp::FloorDivide:
            return floor_divide(a, b);
        case BinaryOp::Modulo:
            return modulo(a, b);
        case BinaryOp::Power:
            break;
    }
    return float_power(a, b);
}

/// How often something of n bytes can be repeated; checks the memory that takes.
size_t repetitions(Runtime& runtime, int64_t times, size_t n_bytes) {
    if (times <= 0 || n_bytes == 0) return 0;
    const auto count = static_cast<uint64_t>(times);
    runtime.reserve(count > SIZE_MAX / n_bytes ? SIZE_MAX : count * n_bytes);
    return count;
}

Value repeat(Runtime& runtime, const Value& sequence, int64_t times) {
    if (sequence.is_string()) {
        const Text& text = sequence.text();
        TextBuilder out;
        const size_t n = repetitions(runtime, times, text.bytes.size());
        runtime.spend(n / 16);
        for (size_t i = 0; i < n; ++i) out.append(text);
        Text result = out.take();
        result.markup = text.markup;
        return runtime.string(std::move(result));
    }
    const List* list = sequence.as<List>();
    std::vector<Value> items;
    const size_t n = repetitions(runtime, times, list->items.size() * sizeof(Value));
    runtime.spend(n * list->items.size() / 4);
    for (size_t i = 0; i < n; ++i) items.insert(items.end(), list->items.begin(), list->items.end());
    return runtime.list(std::move(items), list->type);
}

bool can_repeat(const Value& value) {
    return value.is_string() || is_list_type(value, ListType::List) || is_list_type(value, ListType::Tuple);
}

Value join_lists(Runtime& runtime, const List& a, const List& b) {
    runtime.spend((a.items.size() + b.items.size()) / 4);
    runtime.reserve((a.items.size() + b.items.size()) * sizeof(Value));
    std::vector<Value> items = a.items;
    items.insert(items.end(), b.items.begin(), b.items.end());
    return runtime.list(std::move(items), a.type);
}

Value join_texts(Runtime& runtime, const Text& a, const Text& b) {
    runtime.reserve(a.bytes.size() + b.bytes.size());
    TextBuilder out;
    append_joined(out, a, b.markup);
    append_joined(out, b, a.markup);
    Text result = out.take();
    result.markup = a.markup || b.markup;
    return runtime.string(std::move(result));
}

bool contains_text(Runtime& runtime, const Value& needle, const std::string& text) {
    require_defined(needle);
    if (!needle.is_string()) refuse("'in <string>' requires string as left operand, not {}", type_name(needle));
    runtime.spend_bytes(text.size() + needle.str().size());
    return find_bytes(text, needle.str(), 0) != text.npos;
}

}  // namespace

Value apply(Runtime& runtime, BinaryOp op, const Value& a, const Value& b) {
    if (a.is_integral() && b.is_integral()) return int_arithmetic(op, a.integer(), b.integer());
    if (a.is_number() && b.is_number()) return float_arithmetic(op, a.number(), b.number());
    if (op == BinaryOp::Add && a.is_string() && b.is_string()) return join_texts(runtime, a.text(), b.text());
    if (op == BinaryOp::Add && can_repeat(a) && a.as<List>() && b.as<List>() &&
        a.as<List>()->type == b.as<List>()->type)
        return join_lists(runtime, *a.as<List>(), *b.as<List>());
    if (op == BinaryOp::Multiply && can_repeat(a) && b.is_integral()) return repeat(runtime, a, b.integer());
    if (op == BinaryOp::Multiply && a.is_integral() && can_repeat(b)) return repeat(runtime, b, a.integer());
    if (op == BinaryOp::Modulo && a.is_string()) return runtime.string(format_percent(runtime, a.text(), b));
    no_operator(op, a, b);
}

Value negate(const Value& value) {
    require_defined(value);
    if (value.is_float()) return -value.real();
    if (!value.is_integral()) refuse("bad operand type for unary -: '{}'", type_name(value));
    if (value.integer() == INT64_MIN) too_large();
    return -value.integer();
}

Value plus(const Value& value) {
    require_defined(value);
    if (!value.is_number()) refuse("bad operand type for unary +: '{}'", type_name(value));
    return value.is_float() ? value : Value(value.integer());
}

bool contains(Runtime& runtime, const Value& needle, const Value& container) {
    if (container.is_string()) return contains_text(runtime, needle, container.str());
    if (const Dict* dict = container.as<Dict>()) return dict->find(runtime, needle) != nullptr;
    const List* list = container.as<List>();
    const bool iterable = list || container.is_undefined() || container.as<Iterator>();
    if (!iterable) refuse("argument of type '{}' is not iterable", type_name(container));
    if (list)
        return std::any_of(list->items.begin(), list->items.end(),
                           [&](const Value& item) { return equal(runtime, item, needle); });
    Iterator* iterator = container.as<Iterator>();
    while (iterator && iterator->next < iterator->items.size())
        if (equal(runtime, iterator->items[iterator->next++], needle)) return true;
    return false;
}

bool compare(Runtime& runtime, CompareOp op, const Value& a, const Value& b) {
    switch (op) {
        case CompareOp::Equal:
            return equal(runtime, a, b);
        case CompareOp::NotEqual:
            return !equal(runtime, a, b);
        case CompareOp::Less:
            return order(runtime, a, b, "<") == -1;
        case CompareOp::Greater:
            return order(runtime, a, b, ">") == 1;
        case CompareOp::LessEqual: {
            const int c = order(runtime, a, b, "<=");
            return c == -1 || c == 0;
        }
        case CompareOp::GreaterEqual: {
            const int c = order(runtime, a, b, ">=");
            return c == 1 || c == 0;
        }
        case CompareOp::In:
            return contains(runtime, a, b);
        case CompareOp::NotIn:
            break;
    }
    return !contains(runtime, a, b);
}

void append_joined(TextBuilder& out, const Text& text, bool into_markup) {
    if (into_markup && !text.markup)
        out.append(escape_html(text));
    else
        out.append(text);
}

Value concatenate(Runtime& runtime, const std::vector<Value>& parts) {
    TextBuilder out;
    for (const Value& part : parts) {
        const TextPtr text = to_string(runtime, part);
        runtime.reserve(out.size() + text->bytes.size());
        out.append(*text);
    }
    return runtime.string(out.take());
}

Text escape_html(const Text& text) {
    if (text.markup) return text;
    constexpr std::string_view kCharacters = "&<>'\"";
    constexpr std::string_view kEntities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    TextBuilder out;
    for (size_t at = 0; at < text.bytes.size();) {
        const size_t special = std::min(text.bytes.find_first_of(kCharacters, at), text.bytes.size());
        out.append(text, at, special);
        if (special < text.bytes.size())
            out.append(kEntities[kCharacters.find(text.bytes[special])], text.origin_at(special));
        at = special + 1;
    }
    Text result = out.take();
    result.markup = true;
    return result;
}

}  // namespace llm::jinja
