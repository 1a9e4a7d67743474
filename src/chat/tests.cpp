#include "src/chat/tests.h"

#include "src/chat/access.h"
#include "src/chat/arguments.h"
#include "src/chat/characters.h"
#include "src/chat/compare.h"
#include "src/chat/filters.h"
#include "src/chat/method_table.h"
#include "src/chat/methods.h"
#include "src/chat/operators.h"
#include "src/chat/python_text.h"

namespace llm::jinja {
namespace {

using Test = bool (*)(Runtime& runtime, const Value& input, const Arguments& arguments);

/// A test of the value alone.
template <bool (*passes)(const Value&)>
bool plain(Runtime&, const Value& input, const Arguments& arguments) {
    const Bound bound("test", arguments, {});
    return passes(input);
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_boolean(const Value& v) { return v.is_bool(); }
bool is_true(const Value& v) { return v.is_bool() && v.boolean(); }
bool is_false(const Value& v) { return v.is_bool() && !v.boolean(); }
bool is_integer(const Value& v) { return v.is_int(); }
bool is_float(const Value& v) { return v.is_float(); }
bool is_number(const Value& v) { return v.is_number(); }
bool is_string(const Value& v) { return v.is_string(); }
bool is_mapping(const Value& v) { return v.as<Dict>() != nullptr; }
bool is_escaped(const Value& v) { return v.is_string() && v.text().markup; }

bool is_sequence(const Value& v) {
    const List* list = v.as<List>();
    const bool view = list && (list->type == ListType::DictKeys || list->type == ListType::DictValues ||
                               list->type == ListType::DictItems);
    return !view && (list || v.is_string() || v.is_undefined() || v.as<Dict>());
}

template <bool even>
bool parity(Runtime& runtime, const Value& input, const Arguments& arguments) {
    const Bound bound(even ? "even" : "odd", arguments, {});
    const Value rest = apply(runtime, BinaryOp::Modulo, input, int64_t{2});
    return equal(runtime, rest, int64_t{even ? 0 : 1});
}

bool divisible(Runtime& runtime, const Value& input, const Arguments& arguments) {
    const Bound bound("divisibleby", arguments, {"num"}, 1);
    return equal(runtime, apply(runtime, BinaryOp::Modulo, input, bound.value(0)), int64_t{0});
}

template <bool want_upper>
bool cased(Runtime& runtime, const Value& input, const Arguments& arguments) {
    const Bound bound("test", arguments, {});
    Arguments none;
    const Value text = to_string(runtime, input);
    return truthy(find_string_method(want_upper ? "isupper" : "islower")(runtime, text, none));
}

template <CompareOp op>
bool compared(Runtime& runtime, const Value& a, const Arguments& arguments) {
    const Bound bound("test", arguments, {"other"}, 1);
    return compare(runtime, op, a, bound.value(0));
}

bool same_as(Runtime&, const Value& a, const Arguments& arguments) {
    const Bound bound("sameas", arguments, {"other"}, 1);
    const Value& b = bound.value(0);
    if (a.is_object() && b.is_object()) return a.object() == b.object();
    if (a.is_string() && b.is_string()) return a.text_ptr() == b.text_ptr() || a.str() == b.str();
    if (a.is_bool() || b.is_bool()) return a.is_bool() && b.is_bool() && a.boolean() == b.boolean();
    if (a.is_int() && b.is_int()) return a.integer() == b.integer();
    if (a.is_float() && b.is_float()) return a.real() == b.real();
    return a.is_none() && b.is_none();
}

bool names_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
    const Bound bound("filter", arguments, {});
    hash_of(runtime, input);  // it is looked up, so a list is an error
    return input.is_string() && has_filter(input.str());
}

bool names_test(Runtime& runtime, const Value& input, const Arguments& arguments) {
    const Bound bound("test", arguments, {});
    hash_of(runtime, input);
    return input.is_string() && has_test(input.str());
}

constexpr std::pair<std::string_view, Test> kTests[] = {
    {"defined", plain<is_defined>},
    {"undefined", plain<is_undefined>},
    {"none", plain<is_none>},
    {"boolean", plain<is_boolean>},
    {"true", plain<is_true>},
    {"false", plain<is_false>},
    {"integer", plain<is_integer>},
    {"float", plain<is_float>},
    {"number", plain<is_number>},
    {"string", plain<is_string>},
    {"mapping", plain<is_mapping>},
    {"sequence", plain<is_sequence>},
    {"iterable", plain<is_iterable>},
    {"callable", plain<is_callable>},
    {"escaped", plain<is_escaped>},
    {"odd", parity<false>},
    {"even", parity<true>},
    {"divisibleby", divisible},
    {"lower", cased<false>},
    {"upper", cased<true>},
    {"sameas", same_as},
    {"filter", names_filter},
    {"test", names_test},
    {"in", compared<CompareOp::In>},
    {"==", compared<CompareOp::Equal>},
    {"eq", compared<CompareOp::Equal>},
    {"equalto", compared<CompareOp::Equal>},
    {"!=", compared<CompareOp::NotEqual>},
    {"ne", compared<CompareOp::NotEqual>},
    {"<", compared<CompareOp::Less>},
    {"lt", compared<CompareOp::Less>},
    {"lessthan", compared<CompareOp::Less>},
    {"<=", compared<CompareOp::LessEqual>},
    {"le", compared<CompareOp::LessEqual>},
    {">", compared<CompareOp::Greater>},
    {"gt", compared<CompareOp::Greater>},
    {"greaterthan", compared<CompareOp::Greater>},
    {">=", compared<CompareOp::GreaterEqual>},
    {"ge", compared<CompareOp::GreaterEqual>},
};

}  // namespace

bool has_test(std::string_view name) { return find_in(kTests, name) != nullptr; }

bool apply_test(Runtime& runtime, std::string_view name, const Value& input, const Arguments& arguments) {
    const Test test = find_in(kTests, name);
    if (!test) refuse("there is no test named '{}'", name);
    return test(runtime, input, arguments);
}

}  // namespace llm::jinja
