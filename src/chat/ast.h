#pragma once
// A parsed template: statements and expressions as a tree of plain structs. Trees are bounded in depth by the parser.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/chat/value.h"

namespace llm::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

/// A variable's name, as its place in Parsed::names.
using NameId = uint32_t;

/// Names with a meaning of their own have the first places.
inline constexpr NameId kLoopName = 0, kCallerName = 1, kVarargsName = 2, kKwargsName = 3;

struct Constant {
    Value value;
};
struct Variable {
    NameId name;
};
struct TupleOf {
    std::vector<ExprPtr> items;
};
struct ListOf {
    std::vector<ExprPtr> items;
};
struct DictOf {
    std::vector<std::pair<ExprPtr, ExprPtr>> items;
};
/// object.name
struct Attribute {
    ExprPtr object;
    std::string name;
};
/// object[key]
struct Item {
    ExprPtr object, key;
};
/// object[start:stop:step]; a part that is missing is null.
struct Slice {
    ExprPtr object, start, stop, step;
};
struct CallArguments {
    std::vector<ExprPtr> positional;
    std::vector<std::pair<std::string, ExprPtr>> named;
    ExprPtr list, dict;  ///< *list, **dict; may be null
};
struct Call {
    ExprPtr callee;
    CallArguments arguments;
};
struct FilterOf {
    ExprPtr input;  ///< null: what the block around it printed
    std::string name;
    CallArguments arguments;
};
struct TestOf {
    ExprPtr input;
    std::string name;
    CallArguments arguments;
};
enum class UnaryOp { Not, Minus, Plus };
struct Unary {
    UnaryOp op;
    ExprPtr operand;
};
enum class BinaryOp { Add, Subtract, Multiply, Divide, FloorDivide, Modulo, Power };
struct Binary {
    BinaryOp op;
    ExprPtr left, right;
};
struct AndOr {
    bool is_and;
    ExprPtr left, right;
};
/// a ~ b ~ c
struct Concatenation {
    std::vector<ExprPtr> parts;
};
enum class CompareOp { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, In, NotIn };
/// first < a <= b …
struct Comparison {
    ExprPtr first;
    std::vector<std::pair<CompareOp, ExprPtr>> rest;
};
/// then if condition else otherwise; otherwise may be null.
struct Conditional {
    ExprPtr condition, then, otherwise;
};

struct Expr {
    int line = 0;
    uint32_t depth = 1;  ///< of the tree below it
    std::variant<Constant, Variable, TupleOf, ListOf, DictOf, Attribute, Item, Slice, Call, FilterOf, TestOf, Unary,
                 Binary, AndOr, Concatenation, Comparison, Conditional>
        node;
};

/// What can be assigned to: a name, an attribute of a namespace, or several of them.
struct Target {
    int line = 0;
    NameId name = 0;
    std::string attribute;        ///< of the namespace `name`; empty: the variable itself
    std::vector<Target> targets;  ///< if it is a tuple
    bool is_tuple = false;
};

struct Statement;
using Body = std::vector<Statement>;

struct Print {
    ExprPtr value;
};
struct If {
    std::vector<std::pair<ExprPtr, Body>> branches;
    Body otherwise;
};
struct For {
    Target target;
    ExprPtr iterable, condition;  ///< condition may be null
    Body body, otherwise;
    bool recursive = false;
};
struct Assign {
    Target target;
    ExprPtr value;
};
/// {% set x %}…{% endset %}: what the body prints, through the filter if there is one.
struct AssignBody {
    Target target;
    ExprPtr filter;
    Body body;
};
struct Signature {
    std::vector<NameId> parameters;
    std::vector<std::string> parameter_names;
    std::vector<ExprPtr> defaults;  ///< of the last parameters
    bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};
struct MacroDefinition {
    std::string name;  ///< empty for the body of a call block
    NameId id = 0;
    Signature signature;
    Body body;
};
/// {% call(parameters) macro(…) %}…{% endcall %}
struct CallBlock {
    MacroDefinition caller;
    ExprPtr call;  ///< its node is a Call
};
struct FilterBlock {
    ExprPtr filter;
    Body body;
};
struct With {
    std::vector<std::pair<Target, ExprPtr>> assignments;
    Body body;
};
/// {% generation %}: a scope of its own, nothing else.
struct Generation {
    Body body;
};
struct Break {};
struct Continue {};

struct Statement {
    int line = 0;
    std::variant<TextPtr, Print, If, For, Assign, AssignBody, MacroDefinition, CallBlock, FilterBlock, With, Generation,
                 Break, Continue>
        node;
};

/// How deep statements and brackets may lie in each other, and how deep the tree of an expression may be.
inline constexpr uint32_t kMaxNesting = 150, kMaxExprDepth = 400;

struct Ast {
    Body body;
    std::vector<std::string> names;  ///< of variables, by NameId
};

}  // namespace llm::jinja
