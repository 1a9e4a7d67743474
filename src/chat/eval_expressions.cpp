// Values of expressions.

#include "src/chat/access.h"
#include "src/chat/compare.h"
#include "src/chat/evaluator.h"
#include "src/chat/filters.h"
#include "src/chat/methods.h"
#include "src/chat/operators.h"
#include "src/chat/tests.h"

namespace llm::jinja {
namespace {

Value call_value(Runtime& runtime, const Value& callee, Arguments& arguments) {
    require_defined(callee);
    if (!callee.is_object()) refuse("'{}' object is not callable", type_name(callee));
    return callee.object()->call(runtime, arguments);
}

}  // namespace

Value Evaluator::evaluate(const Expr& expr, const ScopePtr& scope) {
    const Runtime::Level level(runtime_);
    runtime_.spend(1);
    line_ = expr.line;
    return std::visit([&](const auto& node) { return eval(node, scope); }, expr.node);
}

std::vector<Value> Evaluator::evaluate_all(const std::vector<ExprPtr>& exprs, const ScopePtr& scope) {
    std::vector<Value> values;
    values.reserve(exprs.size());
    for (const ExprPtr& expr : exprs) values.push_back(evaluate(*expr, scope));
    return values;
}

Value Evaluator::evaluate_or_undefined(const ExprPtr& expr, const ScopePtr& scope) {
    return expr ? evaluate(*expr, scope) : Value();
}

Value Evaluator::eval(const Constant& node, const ScopePtr&) { return node.value; }

Value Evaluator::eval(const Variable& node, const ScopePtr& scope) {
    if (const Value* found = scope->find(node.name)) return *found;
    return undefined(fmt::format("'{}' is undefined", ast_.names[node.name]));
}

Value Evaluator::eval(const TupleOf& node, const ScopePtr& scope) {
    return runtime_.list(evaluate_all(node.items, scope), ListType::Tuple);
}

Value Evaluator::eval(const ListOf& node, const ScopePtr& scope) {
    return runtime_.list(evaluate_all(node.items, scope));
}

Value Evaluator::eval(const DictOf& node, const ScopePtr& scope) {
    Dict* dict = runtime_.dict();
    for (const auto& [key, value] : node.items) {
        const Value evaluated_key = evaluate(*key, scope);
        dict->set(runtime_, evaluated_key, evaluate(*value, scope));
    }
    return dict;
}

Value Evaluator::eval(const Attribute& node, const ScopePtr& scope) {
    const int line = line_;
    const Value object = evaluate(*node.object, scope);
    line_ = line;
    return get_attribute(runtime_, object, node.name);
}

Value Evaluator::eval(const Item& node, const ScopePtr& scope) {
    const int line = line_;
    const Value object = evaluate(*node.object, scope), key = evaluate(*node.key, scope);
    line_ = line;
    return get_item(runtime_, object, key);
}

Value Evaluator::eval(const Slice& node, const ScopePtr& scope) {
    const int line = line_;
    const Value object = evaluate(*node.object, scope);
    const Value start = evaluate_or_undefined(node.start, scope), stop = evaluate_or_undefined(node.stop, scope);
    const Value step = evaluate_or_undefined(node.step, scope);
    for (const auto* part : {&start, &stop, &step})
        if (part->is_undefined() && part->undefined().why) require_defined(*part);
    line_ = line;
    return get_slice(runtime_, object, start, stop, step);
}

Arguments Evaluator::arguments_of(const CallArguments& node, const ScopePtr& scope) {
    Arguments arguments;
    arguments.positional = evaluate_all(node.positional, scope);
    for (const auto& [name, value] : node.named) arguments.named.emplace_back(name, evaluate(*value, scope));
    if (node.list) {
        const auto more = items_of(runtime_, evaluate(*node.list, scope));
        arguments.positional.insert(arguments.positional.end(), more.begin(), more.end());
    }
    if (node.dict) {
        const Value value = evaluate(*node.dict, scope);
        const Dict* dict = value.as<Dict>();
        if (!dict) refuse("argument after ** must be a mapping, not {}", type_name(value));
        for (const auto& [key, item] : dict->entries) {
            if (!key.is_string()) refuse("keywords must be strings");
            arguments.named.emplace_back(key.str(), item);
        }
    }
    return arguments;
}

/// A method is called without being made a value first.
Value Evaluator::call(const Call& node, const Value& caller, const ScopePtr& scope) {
    const int line = line_;
    const auto* attribute = std::get_if<Attribute>(&node.callee->node);
    const Value object = attribute ? evaluate(*attribute->object, scope) : Value();
    Method method = nullptr;
    Value callee;
    if (attribute && !object.is_undefined() && !is_unsafe_attribute(runtime_, object, attribute->name))
        method = find_method(object, attribute->name);
    if (!method) callee = attribute ? get_attribute(runtime_, object, attribute->name) : evaluate(*node.callee, scope);
    Arguments arguments = arguments_of(node.arguments, scope);
    if (!caller.is_undefined()) arguments.named.emplace_back("caller", caller);
    line_ = line;
    return method ? method(runtime_, object, arguments) : call_value(runtime_, callee, arguments);
}

Value Evaluator::eval(const Call& node, const ScopePtr& scope) { return call(node, Value(), scope); }

Value Evaluator::eval(const FilterOf& node, const ScopePtr& scope) {
    const int line = line_;
    const Value input = node.input ? evaluate(*node.input, scope) : block_output_;
    Arguments arguments = arguments_of(node.arguments, scope);
    line_ = line;
    return apply_filter(runtime_, node.name, input, arguments);
}

Value Evaluator::eval(const TestOf& node, const ScopePtr& scope) {
    const int line = line_;
    const Value input = evaluate(*node.input, scope);
    const Arguments arguments = arguments_of(node.arguments, scope);
    line_ = line;
    return apply_test(runtime_, node.name, input, arguments);
}

Value Evaluator::eval(const Unary& node, const ScopePtr& scope) {
    const Value operand = evaluate(*node.operand, scope);
    if (node.op == UnaryOp::Not) return !truthy(operand);
    return node.op == UnaryOp::Minus ? negate(operand) : plus(operand);
}

Value Evaluator::eval(const Binary& node, const ScopePtr& scope) {
    const int line = line_;
    const Value left = evaluate(*node.left, scope), right = evaluate(*node.right, scope);
    line_ = line;
    return apply(runtime_, node.op, left, right);
}

Value Evaluator::eval(const AndOr& node, const ScopePtr& scope) {
    Value left = evaluate(*node.left, scope);
    return truthy(left) == node.is_and ? evaluate(*node.right, scope) : left;
}

Value Evaluator::eval(const Concatenation& node, const ScopePtr& scope) {
    return concatenate(runtime_, evaluate_all(node.parts, scope));
}

Value Evaluator::eval(const Comparison& node, const ScopePtr& scope) {
    const int line = line_;
    Value left = evaluate(*node.first, scope);
    for (const auto& [op, expr] : node.rest) {
        Value right = evaluate(*expr, scope);
        line_ = line;
        if (!compare(runtime_, op, left, right)) return false;
        left = std::move(right);
    }
    return true;
}

Value Evaluator::eval(const Conditional& node, const ScopePtr& scope) {
    const int line = line_;
    if (truthy(evaluate(*node.condition, scope))) return evaluate(*node.then, scope);
    if (node.otherwise) return evaluate(*node.otherwise, scope);
    return undefined(
        fmt::format("the inline if-expression on line {} evaluated to false and no else section was defined.", line));
}

}  // namespace llm::jinja
