#pragma once
// Runs a template's tree.

#include <memory>
#include <optional>
#include <vector>

#include "src/chat/ast.h"
#include "src/chat/runtime.h"

namespace llm::jinja {

/// Variables of one block, macro call or turn of a loop; what is not found here is looked for further out.
class Scope {
  public:
    explicit Scope(std::shared_ptr<Scope> outer) : outer_(std::move(outer)) {}
    const Value* find(NameId name) const;
    void set(NameId name, Value value);

  private:
    std::shared_ptr<Scope> outer_;
    std::vector<std::pair<NameId, Value>> variables_;
};
using ScopePtr = std::shared_ptr<Scope>;

class Loop;

class Evaluator {
  public:
    /// globals: the variables that rendering starts with, for every name of the tree; undefined where there is none.
    Evaluator(Runtime& runtime, const Ast& ast, const std::vector<std::optional<Value>>& globals);

    Text run();
    /// The line that is being worked on, for messages.
    int line() const { return line_; }

    Runtime& runtime() { return runtime_; }
    Value evaluate(const Expr& expr, const ScopePtr& scope);
    void assign(const Target& target, const Value& value, const ScopePtr& scope);
    /// What a loop prints for the items, its else body included. depth: 0 for a loop that is not in itself.
    Text run_loop(const For& node, const Value& iterable, const ScopePtr& scope, int64_t depth);
    Text call_macro(const MacroDefinition& macro, const ScopePtr& scope, Arguments& arguments);

  private:
    enum class Flow { Normal, Break, Continue };

    Runtime& runtime_;
    const Ast& ast_;
    ScopePtr top_;
    TextBuilder* out_ = nullptr;
    size_t buffered_bytes_ = 0;  // in the outputs that are open
    int line_ = 1;
    Value block_output_;  // what a filter without an input works on

    // exec_statements.cpp
    Flow execute(const Body& body, const ScopePtr& scope);
    Flow execute(const Statement& statement, const ScopePtr& scope);
    Flow run(const TextPtr& text, const ScopePtr& scope);
    Flow run(const Print& node, const ScopePtr& scope);
    Flow run(const If& node, const ScopePtr& scope);
    Flow run(const For& node, const ScopePtr& scope);
    Flow run(const Assign& node, const ScopePtr& scope);
    Flow run(const AssignBody& node, const ScopePtr& scope);
    Flow run(const MacroDefinition& node, const ScopePtr& scope);
    Flow run(const CallBlock& node, const ScopePtr& scope);
    Flow run(const FilterBlock& node, const ScopePtr& scope);
    Flow run(const With& node, const ScopePtr& scope);
    Flow run(const Generation& node, const ScopePtr& scope);
    Flow run(const Break&, const ScopePtr&) { return Flow::Break; }
    Flow run(const Continue&, const ScopePtr&) { return Flow::Continue; }
    void loop_over(const For& node, const Value& iterable, const ScopePtr& scope, int64_t depth);
    void print(const Text& text);
    void print_string(const Value& value);
    /// What the body prints, in a scope of its own.
    Text capture(const Body& body, const ScopePtr& scope, Flow& flow);
    template <class Action>
    Text capture(Action&& action);
    Value filtered(const ExprPtr& filter, Text text, const ScopePtr& scope);
    Value value_of(const MacroDefinition& macro, const ScopePtr& scope);

    // eval_expressions.cpp
    Value eval(const Constant& node, const ScopePtr& scope);
    Value eval(const Variable& node, const ScopePtr& scope);
    Value eval(const TupleOf& node, const ScopePtr& scope);
    Value eval(const ListOf& node, const ScopePtr& scope);
    Value eval(const DictOf& node, const ScopePtr& scope);
    Value eval(const Attribute& node, const ScopePtr& scope);
    Value eval(const Item& node, const ScopePtr& scope);
    Value eval(const Slice& node, const ScopePtr& scope);
    Value eval(const Call& node, const ScopePtr& scope);
    Value eval(const FilterOf& node, const ScopePtr& scope);
    Value eval(const TestOf& node, const ScopePtr& scope);
    Value eval(const Unary& node, const ScopePtr& scope);
    Value eval(const Binary& node, const ScopePtr& scope);
    Value eval(const AndOr& node, const ScopePtr& scope);
    Value eval(const Concatenation& node, const ScopePtr& scope);
    Value eval(const Comparison& node, const ScopePtr& scope);
    Value eval(const Conditional& node, const ScopePtr& scope);
    std::vector<Value> evaluate_all(const std::vector<ExprPtr>& exprs, const ScopePtr& scope);
    Value evaluate_or_undefined(const ExprPtr& expr, const ScopePtr& scope);
    Arguments arguments_of(const CallArguments& node, const ScopePtr& scope);
    /// caller: an argument of that name for a call block, or undefined.
    Value call(const Call& node, const Value& caller, const ScopePtr& scope);
};

}  // namespace llm::jinja
